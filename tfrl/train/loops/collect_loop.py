"""The loop of an actor, which collects and does not train."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

import tensorflow as tf

from tfrl.agents import tf_agent
from tfrl.compilation import accelerators, trace_counts
from tfrl.environments import tf_environment
from tfrl.train.loops import collecting_loop, loop_checks
from tfrl.trajectories import trajectory
from tfrl.utils import number_checks


class CollectLoop(collecting_loop.CollectingLoop):
    """Steps an environment with the collecting policy, and does not train.

    An iteration is one step of the batched environment. What collects the frames writes
    them, for instance to a replay server, and another process trains.
    """

    def __init__(
        self,
        environment: tf_environment.TFEnvironment,
        agent: tf_agent.TFAgent,
        observers: Sequence[Callable[[Any], Any]] = (),
        *,
        seed: int | None = None,
        jit_compile: bool | Literal["auto"] = False,
    ) -> None:
        """Creates the loop.

        Args:
          environment: See `CollectingLoop`.
          agent: See `CollectingLoop`; it is not trained.
          observers: See `CollectingLoop`.
          seed: See `CollectingLoop`.
          jit_compile: See `CollectingLoop`.

        Raises:
          ValueError: Specs do not match.
        """
        super().__init__(environment, agent, None, observers, seed, jit_compile)
        self._rollout: Any = tf.function(
            trace_counts.of_one_object(self._take_steps),
            autograph=False,
            jit_compile=(self._jit_compile and not self._placement.is_split) or None,
        )

    def collect_frames(self, num_steps: int) -> trajectory.Trajectory:
        """Takes `num_steps` steps in one call, and returns their frames.

        It takes the steps that `run` would take, but does not read the counters. A
        process that takes a few steps at a time saves most of its time. Each number of
        steps is traced, and compiled, once.

        Args:
          num_steps: The number of steps of the batched environment (`N`).

        Returns:
          A `Trajectory` of tensors `[N, B, ...]`, like the agent's `collect_data_spec`.

        Raises:
          ValueError: `num_steps` is not positive.
          Exception: The exception that the environment or the function of a
            `host_observer` raised. The frames are lost.
        """
        number_checks.check_sizes(num_steps=num_steps)
        device = tf.device(self._placement.collecting_device)
        with loop_checks.short_assertions(), self._own_errors(), device:
            self._start()
            position, frames = self._rollout(self._take_position(), num_steps)
        self._set_position(position)
        self._iteration.assign_add(num_steps)
        return frames

    def iterate(self, time_step: Any, policy_state: Any) -> tuple[Any, Any, tf.Tensor]:
        """Takes a step; the loss is 0."""
        _, time_step, policy_state = self._take_step(
            self._agent.collect_policy, time_step, policy_state
        )
        return time_step, policy_state, tf.constant(0.0)

    def _take_steps(
        self, position: tuple[Any, ...], num_steps: int
    ) -> tuple[tuple[Any, ...], trajectory.Trajectory]:
        """Takes steps in a graph; returns the position reached, and the frames."""
        with accelerators.graph_for(self._placement.device):
            *reached, frames = self._collect_frames(num_steps, *position)
        return tuple(reached), frames
