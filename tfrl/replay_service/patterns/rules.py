"""Decides, step by step, which configs of a structured writer apply."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tfrl.replay_service.patterns import configs as patterns


class State:
    """The state on which conditions depend."""

    def __init__(self, columns: int, watched: list[int], history: int) -> None:
        """Creates the state before the first step.

        Args:
          columns: The number of columns of the patterns.
          watched: The indices of the leaves that conditions compare.
          history: The number of recent steps that the patterns need.
        """
        self.watched = watched
        # Per column, one bit for each recent step: whether the step has a value. The
        # lowest bit stands for the newest step.
        self.present = [0] * columns
        self.values: dict[int, int] = {}
        self.step_index = -1
        self.num_steps = 0  # Steps with any data so far.
        self.buffer_length = 0
        self.has_data = False  # Whether the newest step of this episode has any data.
        self.step_is_open = False
        self._history = history
        self._all_steps = (1 << history) - 1

    def add(
        self, values: list[Any], watched: Mapping[int, int], partial_step: bool
    ) -> None:
        """Adds a step, or more leaves of an open step."""
        if not self.step_is_open:
            self.step_index += 1
            self.buffer_length = min(self.buffer_length + 1, self._history)
            self.present = [(bits << 1) & self._all_steps for bits in self.present]
            self.values = {}
            self.has_data = False
        for column, value in enumerate(values):
            if value is not None:
                self.present[column] |= 1
        self.values.update(watched)
        self.step_is_open = partial_step
        if not self.has_data and (
            self.values or any(bits & 1 for bits in self.present)
        ):
            self.has_data = True
            self.num_steps += 1

    def end_episode(self, clear_buffers: bool) -> None:
        """Records that the next step is the first step of a new episode."""
        self.step_index = -1
        self.has_data = False
        self.step_is_open = False
        if clear_buffers:
            self.buffer_length = 0
            self.present = [0] * len(self.present)


class Rule:
    """A config, and the step at which it last created an item."""

    def __init__(self, config: patterns.Config, columns: list[int]) -> None:
        """Creates a rule that has not created an item.

        Args:
          config: The config.
          columns: The indices of the leaves that the trajectory writer receives.
        """
        self.config = config
        self.parts = [
            (columns.index(node.flat_source_index), node.key) for node in config.flat
        ]
        self.applied_at = 0  # `State.num_steps` at the last item.
        needs: dict[int, int] = {}
        for node, (column, _) in zip(config.flat, self.parts, strict=True):
            for age in node.ages:
                needs[column] = needs.get(column, 0) | 1 << (age - 1)
        self._needs = list(needs.items())

    def applies(self, state: State, is_end_episode: bool) -> bool:
        """Returns whether to create an item at the newest step."""
        if self.applied_at == state.num_steps:
            return False
        for column, bits in self._needs:
            if state.present[column] & bits != bits:
                return False
        for condition in self.config.conditions:
            value = self._value(condition, state, is_end_episode)
            if value is None or not condition.holds(value):
                return False
        return True

    def priority(self, trajectory: Sequence[Any]) -> float:
        """Returns the priority of an item with these columns."""
        priority = self.config.priority
        if priority.constant_fn is not None:
            return priority.constant_fn.value
        assert priority.td_error is not None
        return _td_error(priority.td_error, self.config.flat, trajectory)

    def _value(
        self, condition: patterns.Condition, state: State, is_end_episode: bool
    ) -> int | None:
        if condition.step_index:
            return state.step_index
        if condition.steps_since_applied:
            return state.num_steps - self.applied_at
        if condition.buffer_length:
            return state.buffer_length
        if condition.is_end_episode:
            return int(is_end_episode)
        assert condition.flat_source_index is not None
        return state.values.get(condition.flat_source_index)


def _td_error(
    td_error: patterns.TDError,
    nodes: Sequence[patterns.PatternNode],
    trajectory: Sequence[Any],
) -> float:
    wanted = td_error.flat_source_index
    index = max(i for i, n in enumerate(nodes) if n.flat_source_index == wanted)
    errors = np.abs(np.asarray(trajectory[index].numpy(), np.float64))
    if errors.ndim != (not nodes[index].is_squeezed):
        raise ValueError(
            f"TD Error expects a scalar tensor: column {wanted} of the steps has shape "
            f"{errors.shape[not nodes[index].is_squeezed :]}. Append the error of each "
            "step as one number."
        )
    weight = td_error.max_priority_weight
    return float(weight * errors.max() + (1 - weight) * errors.mean())
