"""The adder whose items follow patterns, and patterns for it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import tree
from typing_extensions import override

from tfrl.acme import types
from tfrl.acme.adders.reverb import base
from tfrl.acme.adders.reverb import transition as n_step_returns
from tfrl.acme.adders.reverb.base import Step as Step
from tfrl.acme.adders.reverb.base import Trajectory as Trajectory
from tfrl.acme.adders.reverb.sequence import EndBehavior as EndBehavior
from tfrl.acme.adders.reverb.sequence import rows_to_next_sequence
from tfrl.replay_service import structured_writer as sw
from tfrl.utils import number_checks

if TYPE_CHECKING:
    import tensorflow as tf

    from tfrl.replay_service import Client
    from tfrl.specs import EnvironmentSpec

SequencePattern = Callable[[int, Any], sw.Pattern]


class StructuredAdder(base.ReverbAdder):
    """Writes the items that the configs of a `StructuredWriter` describe.

    It writes the rows of `ReverbAdder`, in the structure of `Step`. The functions
    `create_n_step_transition_config` and `create_sequence_config` return configs.
    """

    def __init__(
        self,
        client: Client,
        max_in_flight_items: int | None,
        configs: Sequence[sw.Config],
        step_spec: base.Step,
    ) -> None:
        """Creates an adder without connecting to the server.

        Args:
          client: The client of the server.
          max_in_flight_items: See `ReverbAdder`.
          configs: The configs, in the order in which the items of a row are created.
          step_spec: The specs of a row; see `create_step_spec`.

        Raises:
          ValueError: If there is no config, or the configs of a table do not fit the
            specs or each other.
        """
        if not configs:
            raise ValueError(
                "configs: got none, expected at least one; create_sequence_config "
                "returns some."
            )
        by_table: dict[str, list[sw.Config]] = {}
        for config in configs:
            by_table.setdefault(config.table, []).append(config)
        for table, configs_of_table in by_table.items():
            try:
                sw.infer_signature(configs_of_table, step_spec)
            except ValueError as error:
                raise ValueError(
                    f"configs: the configs of table {table!r} do not fit step_spec or "
                    f"each other: {error}"
                ) from error
        super().__init__(
            client,
            max_sequence_length=0,  # The configs say how many rows are kept.
            max_in_flight_items=max_in_flight_items,
            priority_fns=dict.fromkeys(by_table),
        )
        self._configs = tuple(configs)
        self._empty_row = tree.map_structure(lambda _: None, step_spec)

    @property
    def configs(self) -> tuple[sw.Config, ...]:
        """The configs that describe the items."""
        return self._configs

    def reset(self, timeout_ms: int | None = None) -> None:
        """Drops the rest of a running episode; see `ReverbAdder`."""
        writer = self._open_writer
        is_cut = self._is_cut
        if is_cut:
            # Its end_episode would create the items of an episode's end.
            self._open_writer = None
        super().reset(timeout_ms)
        if is_cut and writer is not None:
            writer.flush(0, timeout_ms)

    @override
    def add_priority_table(
        self, table_name: str, priority_fn: base.PriorityFn | None
    ) -> None:
        """Refuses the call, because the configs name the tables.

        Raises:
          ValueError: Always.
        """
        raise ValueError(
            f"table_name: got {table_name!r}, but the configs of a StructuredAdder say "
            "what is written to which table; pass it configs for this table."
        )

    @classmethod
    @override
    def signature(
        cls,
        environment_spec: EnvironmentSpec,
        extras_spec: Any = (),
        sequence_length: int | None = None,
    ) -> Any:
        """Refuses the call, because the configs determine the items.

        Raises:
          ValueError: Always.
        """
        raise ValueError(
            "signature: the configs of a StructuredAdder define its items; use "
            "tfrl.replay_service.structured.infer_signature(configs, step_spec) for "
            "each table."
        )

    def _make_writer(self) -> Any:
        return self._client.structured_writer(self._configs)

    def _make_row(self, fields: Mapping[str, Any]) -> Any:
        return self._empty_row._replace(**fields)

    def _after_observation(self) -> None:
        self._limit_items()


def create_step_spec(
    environment_spec: EnvironmentSpec, extras_spec: Any = ()
) -> base.Step:
    """Returns the specs of a row, from which patterns are made.

    Args:
      environment_spec: The specs of the environment, of dm_env or of tfrl.
      extras_spec: The nest of specs of the extras of a step.
    """
    return base.step_spec(environment_spec, extras_spec)


def last_rows(num_rows: int, reference_step: Any) -> sw.Pattern:
    """Returns the pattern of the last rows, with all fields.

    Args:
      num_rows: The number of rows.
      reference_step: The result of `structured_writer.create_reference_step`.
    """
    return tree.map_structure(lambda leaf: leaf[-num_rows:], reference_step)


def create_sequence_config(
    step_spec: base.Step,
    sequence_length: int,
    period: int,
    table: str = base.DEFAULT_PRIORITY_TABLE,
    end_of_episode_behavior: EndBehavior = EndBehavior.TRUNCATE,
    sequence_pattern: SequencePattern = last_rows,
) -> list[sw.Config]:
    """Returns configs that write the sequences of a `SequenceAdder`.

    Args:
      step_spec: The specs of a row.
      sequence_length: The number of rows of a sequence.
      period: The number of rows from one sequence to the next.
      table: The name of the table.
      end_of_episode_behavior: `WRITE` or `TRUNCATE`; see `EndBehavior`.
      sequence_pattern: Returns the pattern of a sequence, given the number of its rows
        and a reference step. By default all fields of all rows.

    Raises:
      NotImplementedError: If sequences are to be padded, or to continue in the next
        episode. `SequenceAdder` does both.
      ValueError: If a number is below 1.
    """
    if end_of_episode_behavior not in (EndBehavior.WRITE, EndBehavior.TRUNCATE):
        raise NotImplementedError(
            f"end_of_episode_behavior: got {end_of_episode_behavior}, expected WRITE "
            "or TRUNCATE, because patterns only refer to rows of one episode; use a "
            "SequenceAdder."
        )
    number_checks.check_sizes(sequence_length=sequence_length, period=period)
    reference = sw.create_reference_step(step_spec)
    index = sw.Condition.step_index

    def config(num_rows: int, *conditions: Any) -> sw.Config:
        pattern = sequence_pattern(num_rows, reference)
        return sw.create_config(pattern, table, conditions)

    def remainder(rows: int) -> Any:
        return index() % period == (rows - 1) % period

    configs = [
        config(
            sequence_length, index() >= sequence_length - 1, remainder(sequence_length)
        )
    ]
    at_end = sw.Condition.is_end_episode()
    if end_of_episode_behavior is EndBehavior.WRITE:
        # The first config has written the last rows if a sequence ends with them.
        unaligned = index() % period != (sequence_length - 1) % period
        return [*configs, config(sequence_length, at_end, unaligned)]
    short = [config(n, at_end, index() == n - 1) for n in range(1, sequence_length)]
    cut = []
    for rows in range(sequence_length + 1, sequence_length + period):
        left = sequence_length - rows_to_next_sequence(rows, sequence_length, period)
        if left > 0:
            cut.append(
                config(left, at_end, index() >= sequence_length, remainder(rows))
            )
    return [*configs, *short, *cut]


def create_n_step_transition_config(
    step_spec: base.Step,
    n_step: int,
    table: str = base.DEFAULT_PRIORITY_TABLE,
) -> list[sw.Config]:
    """Returns configs that write the transitions of an `NStepTransitionAdder`.

    The items are `Trajectory`s with the first and the last observation, the first
    action and extras, and all rewards and discounts in between.
    `n_step_from_trajectory` turns them into transitions.

    Args:
      step_spec: The specs of a row.
      n_step: The number of steps of a transition.
      table: The name of the table.

    Raises:
      ValueError: If `n_step` is below 1.
    """
    number_checks.check_sizes(n_step=n_step)
    reference = sw.create_reference_step(step_spec)
    index = sw.Condition.step_index

    def config(n: int, *conditions: Any) -> sw.Config:
        fields = {
            name: tree.map_structure(lambda leaf: leaf[-n - 1 : -n], nest)
            for name, nest in reference._asdict().items()
        }
        fields |= {
            name: tree.map_structure(lambda leaf: leaf[-n - 1 : -1], nest)
            for name, nest in reference._asdict().items()
            if name in ("reward", "discount")
        }
        fields["observation"] = tree.map_structure(
            lambda leaf: leaf[-n - 1 :: n], reference.observation
        )
        return sw.create_config(base.Trajectory(**fields), table, conditions)

    starts = [config(n, index() == n) for n in range(1, n_step)]
    ends = [
        # A short episode is written as a whole, as one of the shorter items at the
        # start.
        config(n, sw.Condition.is_end_episode(), index() != n)
        for n in range(n_step - 1, 0, -1)
    ]
    return [*starts, config(n_step), *ends]


def n_step_from_trajectory(
    trajectory: base.Trajectory, agent_discount: float
) -> types.Transition:
    """Returns the transition of an item of `create_n_step_transition_config`.

    Items have different lengths, so map this function over the items before batching.

    Args:
      trajectory: One item, with both observations `[2, ...]`, the first action and
        extras `[1, ...]`, and `k` rewards and discounts `[k, ...]`. If the rewards or
        the discounts are a nest, so are the transition's. The shapes of a reward and
        its discount are broadcast.
      agent_discount: The agent's discount.

    Returns:
      The transition without time dimension, as an `NStepTransitionAdder` writes it.

    Raises:
      ValueError: Rewards and discounts are nests of different structures.
    """
    structure, parts = n_step_returns.broadcast_structures(
        trajectory.reward, trajectory.discount
    )
    results = [
        _return_and_discount(reward, discounts, agent_discount)
        for reward, discounts in zip(*map(tree.flatten, parts), strict=True)
    ]
    reward, discount = (
        tree.unflatten_as(structure, leaves) for leaves in zip(*results, strict=True)
    )
    return types.Transition(
        observation=tree.map_structure(lambda x: x[0], trajectory.observation),
        action=tree.map_structure(lambda x: x[0], trajectory.action),
        reward=reward,
        discount=discount,
        next_observation=tree.map_structure(lambda x: x[-1], trajectory.observation),
        extras=tree.map_structure(lambda x: x[0], trajectory.extras),
    )


def _return_and_discount(
    reward: Any, discounts: Any, gamma: float
) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns the return and the discount of `k` rewards and discounts `[k, ...]`."""
    import tensorflow as tf

    reward, discounts = map(tf.convert_to_tensor, (reward, discounts))
    rank = max(reward.shape.rank, discounts.shape.rank)
    reward, aligned = (_with_rank(x, rank) for x in (reward, discounts))
    dtype = n_step_returns.return_dtype(
        reward.dtype.as_numpy_dtype, discounts.dtype.as_numpy_dtype
    )
    gamma = tf.cast(gamma, discounts.dtype)
    worth = tf.math.cumprod(gamma * aligned, axis=0, exclusive=True)
    powers = tf.fill(tf.shape(discounts)[:1] - 1, gamma)
    return (
        tf.reduce_sum(tf.cast(worth, dtype) * tf.cast(reward, dtype), axis=0),
        tf.reduce_prod(powers) * tf.reduce_prod(discounts, axis=0),
    )


def _with_rank(step_data: tf.Tensor, rank: int) -> tf.Tensor:
    """Adds dimensions of one after the first, so that shapes of steps broadcast."""
    missing = rank - step_data.shape.rank
    return step_data[(slice(None), *[None] * missing)]
