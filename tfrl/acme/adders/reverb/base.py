"""The base class of the adders that write to a replay server, and their items."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import tree

from tfrl.acme import types
from tfrl.acme.adders import base
from tfrl.specs import array_spec
from tfrl.utils import number_checks

if TYPE_CHECKING:
    from tfrl.replay_service import Client
    from tfrl.specs import EnvironmentSpec


_FIRST, _LAST = 0, 2  # The step types of dm_env and of tfrl.


class Step(NamedTuple):
    """One step of an episode; or, as `Trajectory`, consecutive steps `[T, ...]`.

    The row of an episode's last observation has no action. Its `action`, `reward`,
    `discount` and `extras` are zeros.

    Attributes:
      observation: The nest of observations before the action.
      action: The nest of actions.
      reward: The reward for the action.
      discount: The environment's discount after the action.
      start_of_episode: bool, whether the observation is the first of an episode.
      extras: The nest of extras of the step; `()` without any.
    """

    observation: Any
    action: Any
    reward: Any
    discount: Any
    start_of_episode: Any
    extras: Any = ()


Trajectory = Step

DEFAULT_PRIORITY_TABLE = "priority_table"

PriorityFnInput = Trajectory | types.Transition
PriorityFn = Callable[[Any], float]
PriorityFnMapping = Mapping[str, PriorityFn | None]


class ReverbAdder(base.Adder):
    """Base of the adders that write rows of steps, and items of these rows.

    Row `t` of an episode of `T` actions has the fields of a `Step`: observation `t`,
    the action, its reward and discount, and extras. Row `T` has the last observation,
    and zeros. A subclass overrides the methods `_after_row`, `_after_observation` and
    `_after_episode`, which create items of the rows in `_writer.history`.

    The writer connects when the first episode starts. Arrays are stored with their own
    dtypes, which the signature of a table must have: Python's floats are float64.
    """

    def __init__(
        self,
        client: Client,
        max_sequence_length: int,
        max_in_flight_items: int | None,
        *,
        priority_fns: PriorityFnMapping | None = None,
    ) -> None:
        """Creates an adder without connecting to the server.

        Args:
          client: The client of the server.
          max_sequence_length: The largest number of rows that an item can contain,
            counted from the newest row back.
          max_in_flight_items: The number of items that may wait for the server's
            confirmation after a step; None for no limit. A small number makes the actor
            wait soon when a rate limiter holds items back; a large one is faster.
          priority_fns: For each table, the function that computes an item's priority
            from the item's NumPy arrays, or None for priority 1. By default the items
            go to "priority_table" with priority 1.

        Raises:
          ValueError: If a number is out of range.
        """
        number_checks.check_integer(
            "max_in_flight_items",
            max_in_flight_items,
            0,
            optional=True,
            remedy="None sets no limit",
        )
        self._client = client
        self._max_sequence_length = max_sequence_length
        self._max_in_flight_items = max_in_flight_items
        self._priority_fns = dict(priority_fns or {DEFAULT_PRIORITY_TABLE: None})
        self._open_writer: Any = None
        self._last_step: dict[str, Any] | None = None  # Without its observation.
        self._in_episode = False
        # Whether there are rows of an episode that has not ended properly.
        self._is_cut = False

    @property
    def _writer(self) -> Any:
        """The writer, which is opened when it is first used."""
        if self._open_writer is None:
            self._open_writer = self._make_writer()
        return self._open_writer

    def add_priority_table(
        self, table_name: str, priority_fn: PriorityFn | None
    ) -> None:
        """Makes the adder write its items to one more table.

        Args:
          table_name: The name of the table.
          priority_fn: See `priority_fns` of the constructor.

        Raises:
          ValueError: If the adder writes to this table already.
        """
        if table_name in self._priority_fns:
            raise ValueError(
                f"table_name: got {table_name!r}, to which the adder writes already, "
                f"expected another table than {', '.join(self._priority_fns)}; a table "
                "has one priority function."
            )
        self._priority_fns[table_name] = priority_fn

    def add_first(self, timestep: Any) -> None:
        """Starts an episode; drops the rest of an episode that has not ended.

        Raises:
          ValueError: If the time step is not FIRST.
          ReplayUnavailable: If no server answers.
        """
        if int(timestep.step_type) != _FIRST:
            raise ValueError(
                f"timestep: got step type {int(timestep.step_type)}, expected FIRST "
                "(0); pass the result of environment.reset() to add_first, and later "
                "time steps to add."
            )
        if self._is_cut:
            self.reset()
        self._last_step = None
        self._is_cut = True
        self._append_observation(timestep.observation, is_first=True)
        self._in_episode = True

    def add(self, action: Any, next_timestep: Any, extras: Any = ()) -> None:
        """Adds a step; see `Adder`. Waits while too many items are not confirmed.

        After an error in the data of a step the episode cannot be continued.

        Raises:
          ValueError: If no episode is running, or the data does not match the data of
            earlier steps or the signature of a table.
          ReplayUnavailable: If the connection was lost, and no server answers.
        """
        if not self._in_episode:
            raise ValueError(
                f"{type(self).__name__}.add: got a step, but no episode is running; "
                "call add_first with the first time step of an episode, also after an "
                "error."
            )
        self._in_episode = False
        step = {
            "action": action,
            "reward": next_timestep.reward,
            "discount": next_timestep.discount,
        }
        if not is_empty(extras):
            step["extras"] = extras
        self._last_step = step
        self._append_row(step)
        self._append_observation(next_timestep.observation, is_first=False)
        self._in_episode = int(next_timestep.step_type) != _LAST
        self._after_observation()
        if not self._in_episode:
            self._end(None)

    def end_episode(self, timeout_ms: int | None = None) -> None:
        """Ends a running episode as a truncation; waits until its items are confirmed.

        Raises:
          DeadlineExceededError: If the time runs out first. The items are inserted
            later.
        """
        if self._in_episode and self._last_step is not None:
            self._end(timeout_ms)
        elif self._in_episode:
            self.reset(timeout_ms)  # There is no action yet.

    def reset(self, timeout_ms: int | None = None) -> None:
        """Drops the rest of a running episode; waits until all items are confirmed.

        Raises:
          DeadlineExceededError: If the time runs out first. The items are inserted
            later.
        """
        self._in_episode = self._is_cut = False
        if self._open_writer is not None:
            self._open_writer.end_episode(clear_buffers=True, timeout_ms=timeout_ms)

    def flush(self, timeout_ms: int | None = None) -> None:
        """Waits until all items are in their tables.

        Raises:
          DeadlineExceededError: If the time runs out first. The items are inserted
            later.
        """
        if self._open_writer is not None:
            self._open_writer.flush(timeout_ms=timeout_ms)

    @classmethod
    def signature(
        cls,
        environment_spec: EnvironmentSpec,
        extras_spec: Any = (),
        sequence_length: int | None = None,
    ) -> Any:
        """Returns the signature of a table for the items.

        Args:
          environment_spec: The specs of the environment, of dm_env or of tfrl.
          extras_spec: The nest of specs of the extras of a step.
          sequence_length: The number of steps of each item; None if it varies.

        Returns:
          A `Trajectory` of `tf.TensorSpec`s `[sequence_length, ...]`.
        """
        step = step_spec(environment_spec, extras_spec)
        return tensor_specs(step, (sequence_length,))

    def _make_writer(self) -> Any:
        return self._client.trajectory_writer(self._max_sequence_length)

    def _make_row(self, fields: Mapping[str, Any]) -> Any:
        """Converts some fields of a row to the form that the writer takes."""
        return fields

    def _after_row(self) -> None:
        """Creates items when the newest row is complete."""

    def _after_observation(self) -> None:
        """Creates items when the newest row contains only its observation."""

    def _after_episode(self) -> None:
        """Creates items when the row of the last observation is complete."""

    def _create_item(self, item: Any) -> None:
        """Writes an item to every table; waits while too many are not confirmed."""
        tables = calculate_priorities(self._priority_fns, item)
        for table, priority in tables.items():
            self._writer.create_item(table, priority, item)
        self._limit_items()

    def _limit_items(self) -> None:
        if self._max_in_flight_items is not None:
            self._writer.flush(self._max_in_flight_items)

    def _append_observation(
        self, observation: Any, is_first: bool, **more: Any
    ) -> None:
        """Starts a row, which `_append_row` completes."""
        row = {"observation": observation, "start_of_episode": np.bool_(is_first)}
        self._writer.append(self._make_row(row | more), partial_step=True)

    def _append_row(self, step: Mapping[str, Any]) -> None:
        self._writer.append(self._make_row(step))
        self._after_row()

    def _end(self, timeout_ms: int | None) -> None:
        self._in_episode = False
        self._append_row(zeros_like(self._last_step))
        self._after_episode()
        self._is_cut = False
        self.reset(timeout_ms)


def zeros_like(nest: Any) -> Any:
    """Returns a nest of zeros with the shapes and dtypes of the leaves of `nest`."""
    return tree.map_structure(np.zeros_like, nest)


def final_step_like(step: Step, next_observation: Any) -> Step:
    """Returns the row of an episode's last observation, zeros in its other fields.

    Args:
      step: Another step of the episode, for shapes and dtypes.
      next_observation: The nest of the last observation.
    """
    return zeros_like(step)._replace(
        observation=next_observation, start_of_episode=np.False_
    )


def is_empty(nest: Any) -> bool:
    """Returns whether extras are missing: None, or an empty nest."""
    return nest is None or (tree.is_nested(nest) and not tree.flatten(nest))


def step_spec(environment_spec: EnvironmentSpec, extras_spec: Any = ()) -> Step:
    """Returns the specs of a row.

    Args:
      environment_spec: The specs of the environment.
      extras_spec: The nest of specs of the extras.
    """
    return Step(
        observation=environment_spec.observations,
        action=environment_spec.actions,
        reward=environment_spec.rewards,
        discount=environment_spec.discounts,
        start_of_episode=array_spec.ArraySpec((), np.bool_),
        extras=extras_spec,
    )


def tensor_specs(specs: Any, outer_shape: tuple[int | None, ...] = ()) -> Any:
    """Returns a nest of `tf.TensorSpec`, each named by its path.

    Args:
      specs: A nest of specs with `shape` and `dtype`: of dm_env, of arrays or tensors.
      outer_shape: Dimensions to put in front of the specs' own; None for any number.
    """
    import tensorflow as tf

    return tree.map_structure_with_path(
        lambda path, spec: tf.TensorSpec(
            (*outer_shape, *spec.shape), spec.dtype, name="/".join(map(str, path))
        ),
        specs,
    )


def calculate_priorities(
    priority_fns: PriorityFnMapping, item: Any
) -> dict[str, float]:
    """Returns the priority of an item in each table.

    Args:
      priority_fns: For each table, a function that returns the priority of an item;
        None for priority 1. The item is a `Trajectory` or a `Transition` of NumPy
        arrays.
      item: The item, a nest of columns of a writer's history.
    """
    if any(priority_fns.values()):
        item = tree.map_structure(lambda column: column.numpy(), item)
    return {
        table: 1.0 if priority_fn is None else priority_fn(item)
        for table, priority_fn in priority_fns.items()
    }
