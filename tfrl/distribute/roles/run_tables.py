"""The tables of a replay server, through which actors and learner communicate."""

from __future__ import annotations

from tfrl import replay_buffers, replay_service
from tfrl.agents import tf_agent
from tfrl.distribute.experiment import Experiment
from tfrl.distribute.roles import actor_reports, evaluator
from tfrl.distribute.shards import limiter_windows
from tfrl.distribute.shards.shard import MOST_ITEMS, MOST_SHARDS
from tfrl.distribute.weights import shared_weights, weight_versions
from tfrl.specs import tensor_spec

SEQUENCES = replay_buffers.reverb_replay_buffer.DEFAULT_TABLE


def make_tables(experiment: Experiment) -> list[replay_service.Table]:
    """Makes the tables of sequences, weights and reports, for a server."""
    [made] = make_shards(experiment, 1)
    return made


def make_shards(
    experiment: Experiment, num_shards: int
) -> list[list[replay_service.Table]]:
    """Makes the tables of each of several servers.

    All servers have a table of sequences. The first server also has the tables of
    weights and reports.

    Args:
      experiment: The run's experiment.
      num_shards: The number of servers.

    Raises:
      ValueError: The experiment's table cannot be divided; see `divided`.
    """
    agent, num_environments = experiment.build_for_learner()
    signature = tensor_spec.add_outer_dim(
        weight_versions.stamped_spec(agent.collect_data_spec),
        experiment.sequence_length,
    )
    whole = experiment.make_table(SEQUENCES, signature)
    if whole.info.signature is None:
        whole = whole.replace(signature=signature)
    part = divided(
        whole,
        num_shards,
        items_per_message=experiment.items_per_message(num_environments),
        samples_per_draw=-(-experiment.batch_size // num_shards),
    )
    first, *others = [[part] for _ in range(num_shards)]
    return [[*first, *_central_tables(agent)], *others]


def divided(
    table: replay_service.Table,
    num_shards: int,
    *,
    items_per_message: int,
    samples_per_draw: int,
) -> replay_service.Table:
    """Divides one table among several servers, and returns the table of each.

    Args:
      table: The table that would hold all items.
      num_shards: The number of servers; 1 changes nothing.
      items_per_message: The largest number of items that an actor sends together.
      samples_per_draw: The number of items that the learner draws from one server at a
        time.

    Raises:
      ValueError: There are too many servers for the size of the table, or too few, or
        the rate limiters of the parts would block actors and learner for ever.
    """
    if num_shards == 1:
        return table
    whole = table.info.max_size
    most = min(whole, MOST_SHARDS)
    least = -(-whole // MOST_ITEMS)
    if not least <= num_shards <= most:
        raise ValueError(
            f"num_shards: got {num_shards} for a table of max_size {whole}, expected "
            f"{least} to {most}, so that each shard has 1 to "
            f"{MOST_ITEMS} items."
        )
    part = table.replace(
        max_size=-(-whole // num_shards),
        rate_limiter=limiter_windows.divide(
            table.rate_limiter,
            num_shards,
            items_per_message=items_per_message,
            samples_per_draw=samples_per_draw,
        ),
    )
    limiter_windows.check(
        [part.info] * num_shards,
        items_per_message=items_per_message,
        samples_per_draw=samples_per_draw,
    )
    return part


def _central_tables(agent: tf_agent.TFAgent) -> list[replay_service.Table]:
    """Makes the tables of weights, reports and evaluations."""
    return [
        shared_weights.make_table(agent),
        actor_reports.make_table(),
        *evaluator.make_tables(agent),
    ]
