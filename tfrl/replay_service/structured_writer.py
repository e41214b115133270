"""A writer that makes items by rules given beforehand.

A config says what an item is made of (a pattern: which of the last steps of which
leaves), which table it goes to, and under which conditions it is made:

    reference = create_reference_step({"observation": None, "reward": None})
    config = create_config(
        {"states": reference["observation"][-2:], "reward": reference["reward"][-1]},
        table="transitions",
        conditions=[Condition.step_index() % 2 == 1],
    )
    writer = client.structured_writer([config])

`append` and `end_episode` of the writer then make the items. A pattern applies once the
steps that it looks back at are there, and at most once to a step.
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
    """Appends steps, and makes the items that its configs describe.

    `Client.structured_writer` makes one.

    Args:
      writer: Writes the steps and the items. It keeps at least
        `patterns.history_length(configs)` of the last steps.
      configs: In which order the items of one step are made.

    Raises:
      ValueError: If there is no config, or one can make no items.
    """

    def __init__(self, writer: TrajectoryWriter, configs: Sequence[Config]) -> None:
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
        """Appends a step, or a part of one, and makes the items that are due.

        Args:
          data: A nest of arrays and numbers, always of the same structure. A leaf that
            is None has no value in this step; items whose pattern uses it are not made.
          partial_step: Whether more of the step's leaves will follow, in further calls
            that have None for those given before.

        Raises:
          ValueError: If the number of leaves differs from before or is too small for
            the configs, a leaf has another dtype or shape than before or has its value
            already, or a leaf that a condition looks at is not one integer or boolean.
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
        """Waits until at most so many items are not confirmed by the server.

        Args:
          block_until_num_items: So many may be left.
          timeout_ms: How long to wait; None: as long as it takes.

        Raises:
          ValueError: If `block_until_num_items` is below 0.
          DeadlineExceededError: If it takes longer. The items go in all the same.
        """
        self._writer.flush(block_until_num_items, timeout_ms)

    def end_episode(
        self, clear_buffers: bool = True, timeout_ms: int | None = None
    ) -> None:
        """Makes the items due at an episode's end, and waits until all are confirmed.

        Args:
          clear_buffers: Whether the next items may not look back at this episode's
            steps.
          timeout_ms: How long to wait; None: as long as it takes.

        Raises:
          DeadlineExceededError: If it takes longer. The next episode begins, and the
            items go in, all the same.
        """
        self._apply(self._rules, is_end_episode=True)
        self._state.end_episode(clear_buffers)
        self._writer.end_episode(clear_buffers, timeout_ms)

    @property
    def step_is_open(self) -> bool:
        """Whether the last `append` was of a part of a step."""
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
                f"The steps' data has {num_leaves} leaves, but the configs look at "
                f"leaf {last}, from 0. Make their patterns and conditions from a "
                "structure like the data's."
            )
        self._num_leaves = num_leaves
        self._structure = tree.map_structure(lambda _: None, data)

    def _as_integer(self, column: int, value: Any) -> int:
        array = np.asarray(value)
        if array.size != 1 or array.dtype.kind not in "biu":
            raise ValueError(
                f"A condition looks at column {column} (path={self._path(column)}), "
                f"which has dtype {array.dtype} and shape {array.shape}; it must be "
                "one integer or boolean. Append such a leaf beside it and look at that."
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
        """Names the column that a trajectory writer's message is about."""

        def name(match: re.Match[str]) -> str:
            column = self._columns[int(match[2])]
            return f"{match[1]} {column} (path={self._path(column)})"

        return re.sub(r"([cC]olumn|Field) \((\d+),\)", name, message)
