"""A writer that creates items by rules.

A rule is a config: it defines the contents of an item as a pattern (the leaves, and
which of their last steps), the item's table, and the conditions for creating the item:

    reference = create_reference_step({"observation": None, "reward": None})
    config = create_config(
        {"states": reference["observation"][-2:], "reward": reference["reward"][-1]},
        table="transitions",
        conditions=[Condition.step_index() % 2 == 1],
    )
    writer = client.structured_writer([config])

The writer's `append` and `end_episode` then create the items. A pattern applies when
all of its steps are available, and at most once per step.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import tree

from tfrl.replay_service.patterns import configs as patterns
from tfrl.replay_service.patterns import rules as pattern_rules
from tfrl.replay_service.patterns.builders import (
    Condition,
    ConditionProto,
    Config,
    Pattern,
    PatternTransform,
    ReferenceStep,
    constant_priority_fn,
    create_config,
    create_reference_step,
    infer_signature,
    pattern_from_transform,
    td_error,
    unpack_pattern,
)

if TYPE_CHECKING:
    from tfrl.replay_service.trajectory_writer import TrajectoryWriter

__all__ = [
    "Condition",
    "ConditionProto",
    "Config",
    "Pattern",
    "PatternTransform",
    "ReferenceStep",
    "StructuredWriter",
    "constant_priority_fn",
    "create_config",
    "create_reference_step",
    "infer_signature",
    "pattern_from_transform",
    "td_error",
    "unpack_pattern",
]


class StructuredWriter:
    """Appends steps and creates the items that its configs describe."""

    def __init__(self, writer: TrajectoryWriter, configs: Sequence[Config]) -> None:
        """Creates a writer; `Client.structured_writer` calls this.

        Args:
          writer: The writer that sends the steps and items. It must keep at least
            `patterns.history_length(configs)` steps.
          configs: The configs, in the order in which the items of a step are created.

        Raises:
          ValueError: If there is no config, or a config cannot create items.
        """
        patterns.check_configs(configs)
        self._writer = writer
        columns = {n.flat_source_index for config in configs for n in config.flat}
        self._columns = sorted(columns)
        self._rules = [pattern_rules.Rule(config, self._columns) for config in configs]
        self._rules_of_steps = [
            rule for rule in self._rules if not rule.config.is_for_ends_only
        ]
        watched = {
            condition.flat_source_index
            for config in configs
            for condition in config.conditions
            if condition.flat_source_index is not None
        }
        self._num_leaves: int | None = None
        self._structure: Any = None
        self._state = pattern_rules.State(
            columns=len(columns),
            watched=sorted(watched),
            history=patterns.history_length(configs),
        )

    def append(self, data: Any, *, partial_step: bool = False) -> None:
        """Appends a step or some of its leaves, and creates the items that are due.

        Args:
          data: A nest of arrays and numbers, always of the same structure. A leaf that
            is None has no value in this step; patterns that need it do not apply.
          partial_step: Whether later calls add more leaves to this step. They pass None
            for the leaves that were given before.

        Raises:
          ValueError: If the number of leaves has changed or is too small for the
            configs, the dtype or shape of a leaf has changed, a leaf has a value in
            this step already, or a condition uses a leaf that is not a single integer
            or boolean.
        """
        flat = tree.flatten(data)
        if self._num_leaves != len(flat):
            self._take_structure(data, len(flat))
        values = [flat[i] for i in self._columns]
        watched = {
            i: self._as_integer(i, flat[i])
            for i in self._state.watched
            if flat[i] is not None
        }
        try:
            self._writer.append(values, partial_step=partial_step)
        except ValueError as error:
            raise ValueError(self._with_path(str(error))) from error
        self._state.add(values, watched, partial_step)
        self._apply(self._rules_of_steps, is_end_episode=False)

    def flush(
        self, block_until_num_items: int = 0, timeout_ms: int | None = None
    ) -> None:
        """Waits until all items, or all but a few, are in their tables.

        Args:
          block_until_num_items: The number of items that may remain unconfirmed.
          timeout_ms: The number of milliseconds to wait; None for no limit.

        Raises:
          ValueError: If `block_until_num_items` is below 0.
          DeadlineExceededError: If time is up first. The items are inserted later.
        """
        self._writer.flush(block_until_num_items, timeout_ms)

    def end_episode(
        self, clear_buffers: bool = True, timeout_ms: int | None = None
    ) -> None:
        """Creates the items for an episode's end; waits until all items are confirmed.

        Args:
          clear_buffers: Whether to drop the steps of this episode, so that later items
            cannot refer to them.
          timeout_ms: The number of milliseconds to wait; None for no limit.

        Raises:
          DeadlineExceededError: If time is up first. The next episode starts anyway,
            and the items are inserted later.
        """
        self._apply(self._rules, is_end_episode=True)
        self._state.end_episode(clear_buffers)
        self._writer.end_episode(clear_buffers, timeout_ms)

    @property
    def step_is_open(self) -> bool:
        """Whether the next `append` adds leaves to the last step."""
        return self._state.step_is_open

    def _take_structure(self, data: Any, num_leaves: int) -> None:
        if self._num_leaves is not None:
            raise ValueError(
                f"Flattened data has an unexpected length, got {num_leaves} but wanted "
                f"{self._num_leaves}."
            )
        last = max([*self._columns, *self._state.watched])
        if last >= num_leaves:
            raise ValueError(
                f"append: got data of {num_leaves} leaves, but the configs use leaf "
                f"{last} (from 0); make their patterns and conditions from a structure "
                "like the data's."
            )
        self._num_leaves = num_leaves
        self._structure = tree.map_structure(lambda _: None, data)

    def _as_integer(self, column: int, value: Any) -> int:
        array = np.asarray(value)
        if array.size != 1 or array.dtype.kind not in "biu":
            raise ValueError(
                f"A condition uses column {column} (path={self._path(column)}), which "
                f"has dtype {array.dtype} and shape {array.shape}; it must be a single "
                "integer or boolean. Append another leaf for the condition."
            )
        return int(array.reshape(()))

    def _apply(self, rules: Sequence[pattern_rules.Rule], is_end_episode: bool) -> None:
        state = self._state
        if not state.has_data:
            return
        for rule in rules:
            if rule.applies(state, is_end_episode):
                history = self._writer.history
                trajectory = [history[column][key] for column, key in rule.parts]
                self._writer.create_item(
                    rule.config.table, rule.priority(trajectory), trajectory
                )
                rule.applied_at = state.num_steps

    def _path(self, column: int) -> tuple[Any, ...]:
        return tree.flatten_with_path(self._structure)[column][0]

    def _with_path(self, message: str) -> str:
        """Adds the path of the column to an error message of the trajectory writer."""

        def name(match: re.Match[str]) -> str:
            column = self._columns[int(match[2])]
            return f"{match[1]} {column} (path={self._path(column)})"

        return re.sub(r"([cC]olumn|Field) \((\d+),\)", name, message)
