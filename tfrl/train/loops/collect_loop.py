"""The loop of an actor, which collects and does not train."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

import tensorflow as tf

from tfrl.agents import tf_agent
from tfrl.compilation import accelerators, fast_function
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
        # By their numbers of steps, the functions that take them.
        self._rollouts: dict[int, Any] = {}

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
            if num_steps not in self._rollouts:
                self._rollouts[num_steps] = self._make_rollout(num_steps)
            position, frames = self._rollouts[num_steps](self._take_position())
        self._set_position(position)
        self._iteration.assign_add(num_steps)
        return frames

    def iterate(self, time_step: Any, policy_state: Any) -> tuple[Any, Any, tf.Tensor]:
        """Takes a step; the loss is 0."""
        _, time_step, policy_state = self._take_step(
            self._agent.collect_policy, time_step, policy_state
        )
        return time_step, policy_state, tf.constant(0.0)

    def _make_rollout(self, num_steps: int) -> Any:
        """Returns a function that takes `num_steps` steps from a position.

        It returns the position reached, and the frames.
        """

        def rollout(position: tuple[Any, ...]) -> tuple[tuple[Any, ...], Any]:
            with accelerators.graph_for(self._placement.device):
                *reached, frames = self._collect_frames(num_steps, *position)
            return tuple(reached), frames

        return fast_function.fast_function(
            rollout,
            autograph=False,
            jit_compile=(self._jit_compile and not self._placement.is_split) or None,
        )
