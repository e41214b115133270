"""What a structured writer writes, and when: declarations, checked as they are made.

These stand where Reverb has protocol buffers (`patterns_pb2`) and have their fields.
They are made by the functions of `structured_writer`, which is where to look first.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import Any


@dataclasses.dataclass(frozen=True)
class PatternNode:
    """Some of the last steps of one column.

    Attributes:
      flat_source_index: Which of the flattened step's leaves is the column.
      start: The first step, counted back from the newest, which is -1; None: the one
        step `stop`, without a dimension of time.
      stop: The step before which they end; None or 0: the newest is among them.
      step: They are this far apart; None: 1.

    Raises:
      ValueError: If they cannot be counted back from the newest step.
    """

    flat_source_index: int = 0
    start: int | None = None
    stop: int | None = None
    step: int | None = None

    def __post_init__(self) -> None:
        fault = self._fault()
        if fault:
            raise ValueError(
                f"{fault} Count back from the newest step: [-1] is this step, [-3:] "
                "are the last three."
            )

    @property
    def is_squeezed(self) -> bool:
        """Whether it is one step, without a dimension of time."""
        return self.start is None

    @property
    def age(self) -> int:
        """How many steps it looks back."""
        return -(self.stop or 0) if self.start is None else -self.start

    @property
    def ages(self) -> Sequence[int]:
        """How far back each of its steps lies, the oldest first; the newest is 1."""
        if self.start is None:
            return [self.age]
        return range(-self.start, -(self.stop or 0), -(self.step or 1))

    @property
    def key(self) -> int | slice:
        """What gives its steps when a column is indexed by it."""
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
    """`value % mod == eq`, where values below 0 have no remainder above 0.

    Raises:
      ValueError: If no value could fulfil it.
    """

    mod: int
    eq: int

    def __post_init__(self) -> None:
        if self.mod <= 0:
            raise ValueError(f"`mod_eq.mod` must be > 0 but got {self.mod}.")
        if self.eq < 0:
            raise ValueError(f"`mod_eq.eq` must be >= 0 but got {self.eq}.")


@dataclasses.dataclass(frozen=True)
class Condition:
    """One of five values, compared in one of three ways.

    Attributes:
      step_index: Compares the newest step's number in its episode, from 0.
      steps_since_applied: Compares how many steps there were since the config's last
        item (or ever), the newest included.
      buffer_length: Compares the number of steps that can be looked back at, which
        grows to the most that any config asks for.
      is_end_episode: Compares 1 at the end of an episode, else 0.
      flat_source_index: Compares the newest value of this leaf of the step.
      eq: Is the value equal to this?
      ge: Is the value at least this?
      mod_eq: Has the value this remainder?
      inverse: Whether the answer has to be no.

    Raises:
      ValueError: If not one value and one comparison are chosen.
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
        """Returns whether `value`, an integer or a tensor of one, fulfils it."""
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
    """A priority from the errors in a column, mixed of their maximum and their mean.

    Attributes:
      max_priority_weight: The maximum's part.
      flat_source_index: Which of the flattened step's leaves is the column.
    """

    max_priority_weight: float
    flat_source_index: int


@dataclasses.dataclass(frozen=True)
class Priority:
    """How items get their priority: one of two ways.

    Raises:
      ValueError: If not one way is given, or its number is below 0 or not finite.
    """

    constant_fn: ConstantPriorityFn | None = None
    td_error: TDError | None = None

    def __post_init__(self) -> None:
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
    """What one kind of item is made of, where it goes, and when it is made.

    Attributes:
      flat: The item's leaves, in the order of the flattened pattern.
      pattern_structure: The pattern, with None for every leaf.
      table: The table's name.
      priority: How items get their priority.
      conditions: All of these must hold.
    """

    flat: list[PatternNode]
    pattern_structure: Any
    table: str
    priority: Priority
    conditions: list[Condition] = dataclasses.field(default_factory=list)

    @property
    def is_for_ends_only(self) -> bool:
        """Whether it makes items at ends of episodes only."""
        return any(condition.is_end_episode for condition in self.conditions)


def check_configs(configs: Sequence[Config]) -> None:
    """Checks that every config can make items.

    Raises:
      ValueError: If there are none, or one cannot; the text says which.
    """
    if not configs:
        raise ValueError("At least one config must be provided.")
    for position, config in enumerate(configs):
        fault = _fault_of(config)
        if fault:
            raise ValueError(f"Invalid configuration at position {position}: {fault}")


def history_length(configs: Sequence[Config]) -> int:
    """Returns how many of the last steps the configs look back at."""
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
            f"the priority is made of column {td_error.flat_source_index}, but the "
            f"pattern uses the columns {columns} only. Add it to the pattern."
        )
    return ""
