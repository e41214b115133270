"""The learner of a run: a `train.Run` on the actors' sequences."""

from __future__ import annotations

import functools
import signal
from collections.abc import Callable, Sequence
from typing import Any, cast

import tensorflow as tf

from tfrl import replay_buffers, train
from tfrl.agents import tf_agent
from tfrl.distribute import replay_servers
from tfrl.distribute.experiment import Experiment
from tfrl.distribute.roles import (
    actor_reports,
    checkpoint_manifest,
    evaluator,
    run_measurements,
    run_tables,
)
from tfrl.distribute.shards import sharded_client, sharded_replay_buffer
from tfrl.distribute.weights import shared_weights, weight_versions

# The number of seconds without an answer of any of several servers.
_TIMEOUT = 30.0

_ReplayBuffer = (
    replay_buffers.ReverbReplayBuffer | sharded_replay_buffer.ShardedReplayBuffer
)


def learn(
    experiment: Experiment,
    servers: replay_servers.Servers,
    directory: train.RunDirectory,
    num_iterations: int,
    is_stopped: Callable[[], bool],
    strategy: tf.distribute.Strategy | None = None,
    *,
    num_actors: int | None = None,
    has_evaluator: bool = False,
) -> train.RunResult:
    """Trains on the actors' sequences, and pushes the weights.

    A signal stops it as it stops every `train.Run`: it saves a checkpoint first.

    Args:
      experiment: The run's experiment.
      servers: The replay servers.
      directory: The directory of the outputs, which the run locks.
      num_iterations: The total number of updates.
      is_stopped: Returns whether to stop before that.
      strategy: The strategy of several replicas; None trains on one. In a
        `train.worker_group`, this process is the chief.
      num_actors: The number of actors in the run, for the log; None if unknown.
      has_evaluator: Whether a separate process evaluates.

    Raises:
      WorkerLostError: Another worker of the group has ended.
    """
    agent, num_environments = experiment.build_for_learner(strategy, experiment.device)
    replay_buffer = make_replay_buffer(experiment, servers, agent, num_environments)
    central = replay_servers.CentralServer(servers)
    collected = actor_reports.Collected(
        central.client,
        functools.partial(central.attempt, within=replay_servers.SHORT),
    )
    lags = weight_versions.Lags()
    wanted = run_measurements.WantedProcesses(num_actors, len(servers.addresses()))

    def run(loop: train.DatasetLoop) -> train.RunResult:
        settings = dict(experiment.make_run_settings(agent))
        settings["callbacks"] = [
            shared_weights.PushWeights(agent, central, experiment.push_period),
            *settings.get("callbacks", ()),
            checkpoint_manifest.WriteManifest(
                directory.manifest,
                lambda: loop.iteration,
                lambda: replay_buffer.last_checkpoints,
            ),
        ]
        settings["view"] = run_measurements.RunMeasurements(
            loop, collected, lags, replay_buffer.table_infos, wanted
        )
        if has_evaluator:
            settings["evaluate"] = evaluator.Evaluations(agent, central)
        made = train.Run(
            loop,
            directory,
            num_iterations=num_iterations,
            is_interrupted=is_stopped,
            **settings,
        )
        collected.take()
        return made.run()

    with replay_buffer.reraise():
        if strategy is None:
            result = run(_make_loop(experiment, agent, replay_buffer, lags, collected))
        else:
            replicas = _make_replicas_loop(
                experiment, agent, replay_buffer, lags, strategy, collected
            )
            # The chief has a result.
            result = cast(train.RunResult, replicas.run_group(lambda: run(replicas)))
    return finished(result, is_stopped)


def finished(
    result: train.RunResult, is_stopped: Callable[[], bool]
) -> train.RunResult:
    """Returns the result of a run; does not return if a signal has ended the run.

    Args:
      result: The result.
      is_stopped: Returns whether the run was asked to stop.
    """
    if not (result.finished or result.stopped_by or is_stopped()):
        # This must not look like the end of the training.
        signal.raise_signal(signal.SIGTERM)
    return result


def follow(
    experiment: Experiment,
    servers: replay_servers.Servers,
    strategy: tf.distribute.Strategy,
) -> None:
    """Does the same updates as the chief, in another process of its group.

    Args:
      experiment: The run's experiment.
      servers: The replay servers.
      strategy: The strategy of the group.

    Raises:
      WorkerLostError: Another worker of the group has ended.
    """
    agent, num_environments = experiment.build_for_learner(strategy)
    replay_buffer = make_replay_buffer(experiment, servers, agent, num_environments)
    lags = weight_versions.Lags()  # Nobody reads these: the chief counts its own.
    with replay_buffer.reraise():
        _make_replicas_loop(experiment, agent, replay_buffer, lags, strategy).run_group(
            lambda: None
        )


def make_replay_buffer(
    experiment: Experiment,
    servers: replay_servers.Servers,
    agent: tf_agent.TFAgent,
    num_environments: int,
) -> _ReplayBuffer:
    """Makes the buffer whose dataset the learner trains on.

    Args:
      experiment: The run's experiment.
      servers: The replay servers.
      agent: The agent, whose `collect_data_spec` describes a frame without its stamp.
      num_environments: The number of environments of each actor.
    """
    if len(servers.addresses()) > 1 or experiment.importance_exponent is not None:
        client = sharded_client.ShardedClient(
            servers.addresses,
            run_tables.SEQUENCES,
            items_per_message=experiment.items_per_message(num_environments),
            timeout=_TIMEOUT,
        )
        return sharded_replay_buffer.ShardedReplayBuffer(
            weight_versions.stamped_spec(agent.collect_data_spec),
            client,
            experiment.sequence_length,
            "mass" if client.is_prioritized else "size",
            experiment.max_in_flight,
            importance_exponent=experiment.importance_exponent,
        )
    return replay_buffers.ReverbReplayBuffer(
        weight_versions.stamped_spec(agent.collect_data_spec),
        run_tables.SEQUENCES,
        experiment.sequence_length,
        server_address=servers.first,
        dataset_buffer_size=experiment.max_in_flight,
    )


def _make_loop(
    experiment: Experiment,
    agent: tf_agent.TFAgent,
    replay_buffer: _ReplayBuffer,
    lags: weight_versions.Lags,
    collected: actor_reports.Collected,
) -> train.DatasetLoop:
    """Makes the loop of a learner on one device."""
    # Each update changes the priorities by which the next batch is drawn.
    compiles = experiment.jit_compile and not replay_buffer.is_prioritized
    return train.DatasetLoop(
        agent,
        lambda: _dataset(replay_buffer, experiment.batch_size),
        replay_buffer,
        compiled_updates=experiment.push_period if compiles else None,
        priority_fn=experiment.priority_fn,
        prepare_fn=functools.partial(
            _without_versions, agent, lags, tf.distribute.get_strategy()
        ),
        collected=collected,
    )


def _make_replicas_loop(
    experiment: Experiment,
    agent: tf_agent.TFAgent,
    replay_buffer: _ReplayBuffer,
    lags: weight_versions.Lags,
    strategy: tf.distribute.Strategy,
    collected: actor_reports.Collected | None = None,
) -> train.StrategyLoop:
    """Makes the loop of several replicas, the same in all processes of a group."""
    return train.StrategyLoop(
        agent,
        lambda size, _: _dataset(replay_buffer, size),
        strategy,
        batch_size=experiment.batch_size,
        seed=experiment.seed,
        replay_buffer=replay_buffer,
        priority_fn=experiment.priority_fn,
        prepare_fn=functools.partial(_without_versions, agent, lags, strategy),
        collected=collected,
    )


def _dataset(replay_buffer: _ReplayBuffer, batch_size: int) -> tf.data.Dataset:
    """Returns elements `(frames, info, version)`."""
    dataset = replay_buffer.as_dataset(sample_batch_size=batch_size)
    return dataset.map(lambda stamped, info: (stamped.frames, info, stamped.version))


def _without_versions(
    agent: tf_agent.TFAgent,
    lags: weight_versions.Lags,
    strategy: tf.distribute.Strategy,
    elements: Sequence[Any],
) -> Sequence[tuple[Any, Any]]:
    """Returns `(frames, info)` of each element, and counts the frames' policy lags.

    Args:
      agent: The agent that the elements train, in their order.
      lags: Counts the lags of the first replica of this process.
      strategy: The strategy of the replicas.
      elements: Elements `(frames, info, version)`.
    """
    # An update trains on sequences that were drawn before it, maybe long before.
    local = strategy.experimental_local_results
    versions = tf.stack([local(version)[0] for _, _, version in elements])
    first = tf.cast(agent.train_step_counter, tf.int64)
    steps = first + tf.range(len(elements), dtype=tf.int64)
    lags.count(versions, steps[:, tf.newaxis, tf.newaxis])
    return [(frames, info) for frames, info, _ in elements]
