"""Dataclasses for the configs of a structured writer.

They replace Reverb's protocol buffers (`patterns_pb2`), have the same fields, and check
them on creation. The functions of `structured_writer` create them: start reading there.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import Any


@dataclasses.dataclass(frozen=True)
class PatternNode:
    """A selection of some of the last steps of one column.

    Attributes:
      flat_source_index: The index of the column among the flattened step's leaves.
      start: The first step, counted back from the newest, which is -1; None for the
        single step `stop`, without a time dimension.
      stop: The step after the last one; None or 0 to include the newest step.
      step: The distance between steps; None for 1.
    """

    flat_source_index: int = 0
    start: int | None = None
    stop: int | None = None
    step: int | None = None

    def __post_init__(self) -> None:
        """Checks the fields.

        Raises:
          ValueError: If the fields do not select steps counted back from the newest.
        """
        fault = self._fault()
        if fault:
            raise ValueError(
                f"{fault} Count back from the newest step: [-1] is the newest step, "
                "[-3:] the last three."
            )

    @property
    def is_squeezed(self) -> bool:
        """Whether the node selects a single step without a time dimension."""
        return self.start is None

    @property
    def age(self) -> int:
        """The age of the oldest selected step; the newest step has age 1."""
        return -(self.stop or 0) if self.start is None else -self.start

    @property
    def ages(self) -> Sequence[int]:
        """The age of each selected step, oldest first; the newest step has age 1."""
        if self.start is None:
            return [self.age]
        return range(-self.start, -(self.stop or 0), -(self.step or 1))

    @property
    def key(self) -> int | slice:
        """The index that selects these steps from a column's history."""
        if self.start is None:
            return -self.age
        return slice(self.start, self.stop or None, self.step)

    def _fault(self) -> str:
        start, stop, step = self.start, self.stop, self.step
        faults = {
            f"`flat_source_index` must be >= 0 but got {self.flat_source_index}.": (
                self.flat_source_index < 0
            ),
            "At least one of `start` and `stop` must be specified.": (
                start is None and stop is None
            ),
            f"`start` must be < 0 but got {start}.": start is not None and start >= 0,
            f"`stop` must be <= 0 but got {stop}.": stop is not None and stop > 0,
            f"`stop` ({stop}) must be > `start` ({start}) when both are specified.": (
                start is not None and stop is not None and start >= stop
            ),
            f"`stop` must be < 0 when `start` isn't set but got {stop}.": (
                start is None and stop == 0
            ),
            "`step` must only be set when `start` is set.": (
                step is not None and start is None
            ),
            f"`step` must be > 0 but got {step}.": step is not None and step <= 0,
        }
        return next((text for text, is_so in faults.items() if is_so), "")


@dataclasses.dataclass(frozen=True)
class ModuloEq:
    """The comparison `value % mod == eq`. Negative values have remainders <= 0."""

    mod: int
    eq: int

    def __post_init__(self) -> None:
        """Checks the numbers.

        Raises:
          ValueError: If no value could have this remainder.
        """
        if self.mod <= 0:
            raise ValueError(f"`mod_eq.mod` must be > 0 but got {self.mod}.")
        if self.eq < 0:
            raise ValueError(f"`mod_eq.eq` must be >= 0 but got {self.eq}.")


@dataclasses.dataclass(frozen=True)
class Condition:
    """A condition of an item: one of five values, compared in one of three ways.

    Attributes:
      step_index: Compares the newest step's number in its episode, from 0.
      steps_since_applied: Compares the number of steps since the config's last item, or
        of all steps before the first item, including the newest step.
      buffer_length: Compares the number of recent steps that are available. It grows up
        to the largest number that any config needs.
      is_end_episode: Compares 1 at the end of an episode, else 0.
      flat_source_index: Compares the newest value of this leaf of the step.
      eq: The value must be equal to this number.
      ge: The value must be at least this number.
      mod_eq: The value must have this remainder.
      inverse: Whether to invert the result of the comparison.
    """

    step_index: bool = False
    steps_since_applied: bool = False
    buffer_length: bool = False
    is_end_episode: bool = False
    flat_source_index: int | None = None
    eq: int | None = None
    ge: int | None = None
    mod_eq: ModuloEq | None = None
    inverse: bool = False

    def __post_init__(self) -> None:
        """Checks the fields.

        Raises:
          ValueError: If not exactly one value and one comparison are set.
        """
        lefts = [self.step_index, self.steps_since_applied, self.buffer_length]
        lefts += [self.is_end_episode, self.flat_source_index is not None]
        if sum(lefts) != 1:
            raise ValueError(
                "Conditions must specify a value for `left`: one of `step_index`, "
                "`steps_since_applied`, `buffer_length`, `is_end_episode` and "
                f"`flat_source_index`, but got {sum(lefts)} of them."
            )
        if (self.flat_source_index or 0) < 0:
            raise ValueError(
                f"`flat_source_index` must be >= 0 but got {self.flat_source_index}."
            )
        comparisons = [x is not None for x in (self.eq, self.ge, self.mod_eq)]
        if sum(comparisons) != 1:
            raise ValueError(
                "Conditions must specify a value for `cmp`: one of `eq`, `ge` and "
                f"`mod_eq`, but got {sum(comparisons)} of them."
            )
        if self.is_end_episode and (self.eq != 1 or self.inverse):
            raise ValueError(
                "Condition must use `eq=1` when using `is_end_episode`, without "
                "`inverse`."
            )

    def holds(self, value: Any) -> Any:
        """Returns whether the condition holds for an integer, or an integer tensor."""
        if self.eq is not None:
            answer = value == self.eq
        elif self.ge is not None:
            answer = value >= self.ge
        else:
            assert self.mod_eq is not None
            answer = value % self.mod_eq.mod == self.mod_eq.eq
            if self.mod_eq.eq:
                answer = answer & (value >= 0)
        return answer ^ self.inverse


@dataclasses.dataclass(frozen=True)
class ConstantPriorityFn:
    """The same priority for every item."""

    value: float


@dataclasses.dataclass(frozen=True)
class TDError:
    """A priority from the errors in a column: a mix of their maximum and mean.

    Attributes:
      max_priority_weight: The weight of the maximum.
      flat_source_index: The index of the column among the flattened step's leaves.
    """

    max_priority_weight: float
    flat_source_index: int


@dataclasses.dataclass(frozen=True)
class Priority:
    """The priority of items: either a constant, or computed from errors.

    Attributes:
      constant_fn: The same priority for every item, or None.
      td_error: A priority from errors, or None.
    """

    constant_fn: ConstantPriorityFn | None = None
    td_error: TDError | None = None

    def __post_init__(self) -> None:
        """Checks the fields.

        Raises:
          ValueError: If not exactly one field is set, or the constant or the weight is
            below 0 or not finite.
        """
        if (self.constant_fn is None) == (self.td_error is None):
            raise ValueError(
                "A priority is either `constant_fn` or `td_error`, but got "
                f"{self.constant_fn} and {self.td_error}."
            )
        if self.constant_fn is not None:
            name, value = "A constant priority", self.constant_fn.value
        else:
            assert self.td_error is not None
            name, value = "`max_priority_weight`", self.td_error.max_priority_weight
        if not (math.isfinite(value) and value >= 0):
            raise ValueError(f"{name} must be finite and >= 0 but got {value}.")


@dataclasses.dataclass
class Config:
    """The pattern, table, priority and conditions that define one kind of item.

    Attributes:
      flat: The item's leaves, in the order of the flattened pattern.
      pattern_structure: The pattern, with None for every leaf.
      table: The name of the table.
      priority: The priority of the items.
      conditions: The conditions, which must all hold.
    """

    flat: list[PatternNode]
    pattern_structure: Any
    table: str
    priority: Priority
    conditions: list[Condition] = dataclasses.field(default_factory=list)

    @property
    def is_for_ends_only(self) -> bool:
        """Whether the config creates items only at the ends of episodes."""
        return any(condition.is_end_episode for condition in self.conditions)


def check_configs(configs: Sequence[Config]) -> None:
    """Checks that every config can create items.

    Raises:
      ValueError: If there is no config, or a config cannot create items.
    """
    if not configs:
        raise ValueError("At least one config must be provided.")
    for position, config in enumerate(configs):
        fault = _fault_of(config)
        if fault:
            raise ValueError(f"Invalid configuration at position {position}: {fault}")


def history_length(configs: Sequence[Config]) -> int:
    """Returns the number of recent steps that the configs need."""
    return max(node.age for config in configs for node in config.flat)


def _fault_of(config: Config) -> str:
    if not config.flat:
        return "`flat` must not be empty: the pattern has no leaves."
    if not config.table:
        return "`table` must not be empty."
    td_error = config.priority.td_error
    columns = [node.flat_source_index for node in config.flat]
    if td_error is not None and td_error.flat_source_index not in columns:
        return (
            f"the priority uses column {td_error.flat_source_index}, but the pattern "
            f"only has the columns {columns}. Add it to the pattern."
        )
    return ""
