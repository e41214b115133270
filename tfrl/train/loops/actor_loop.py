"""The loop of an actor, which collects and does not train."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

import tensorflow as tf

from tfrl.agents import tf_agent
from tfrl.compilation import accelerators, fast_function
from tfrl.environments import tf_environment
from tfrl.savers import serialization
from tfrl.train.loops import collecting_loop, loop_checks, rollouts
from tfrl.trajectories import trajectory
from tfrl.utils import number_checks, variables

if TYPE_CHECKING:
    from tfrl.typing import types


class ActorLoop(collecting_loop.CollectingLoop):
    """Steps an environment with the collecting policy, and does not train.

    An iteration is one step of the batched environment. The process that collects the
    frames writes them, for instance to a replay server, and another process trains.

    Continuous actions are clipped to the bounds of their spec for the environment. The
    frames hold the actions as they were drawn.
    """

    def __init__(
        self,
        environment: tf_environment.TFEnvironment,
        agent: tf_agent.TFAgent,
        observers: Sequence[types.Observer] = (),
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
        # The functions that take steps. The keys are the number of steps and the form
        # of the result.
        self._rollouts: dict[tuple[int, bool], Any] = {}

    def collect_frames(self, num_steps: int) -> trajectory.Trajectory:
        """Takes `num_steps` steps in one call, and returns their frames.

        It takes the steps that `run` would take, but does not read the counters. This
        saves most of the time of a process that takes a few steps at a time. Each
        number of steps is traced, and compiled, once.

        Args:
          num_steps: The number of steps of the batched environment (`N`).

        Returns:
          A `Trajectory` of tensors `[N, B, ...]`, like the agent's `collect_data_spec`.

        Raises:
          ValueError: `num_steps` is not positive.
          Exception: The exception that the environment or the function of a
            `host_observer` raised. The frames are lost.
        """
        frames, _ = self._collected(num_steps, with_reached=False)
        return frames

    def collect_rollout(
        self, num_steps: int
    ) -> tuple[trajectory.Trajectory, types.NestedTensor]:
        """Takes the steps of `collect_frames`, for an agent that learns from rollouts.

        Args:
          num_steps: The number of steps of the batched environment (`T`).

        Returns:
          A `Trajectory` `[B, T + 1, ...]`, whose last frames hold the time step
          reached, and the policy's state before the first frame, `[B, ...]`.

        Raises:
          ValueError: `num_steps` is not positive.
          Exception: See `collect_frames`.
        """
        return self._collected(num_steps, with_reached=True)

    def save_state(self) -> bytes:
        """Returns the state for the next steps, except for the agent's variables.

        These are the states of environment and policy, if the environment can save its
        state, the counters, the random numbers and the observers' variables, as arrays
        and JSON. `restore_state` restores them.
        """
        state = {
            "variables": [variable.numpy() for variable in self._own_variables()],
            "position": self._position.serialize(),
        }
        return serialization.to_bytes(state)

    def restore_state(self, state: bytes) -> None:
        """Restores a state that `save_state` returned in a loop with the same parts.

        Raises:
          ValueError: The state belongs to another loop, for example with another batch
            size.
        """
        saved = serialization.from_bytes(state)
        own = self._own_variables()
        for variable, value in zip(own, saved["variables"], strict=True):
            variable.assign(value)
        self._position.deserialize(saved["position"])

    def iterate(
        self, time_step: types.TimeStep, policy_state: types.NestedTensor
    ) -> tuple[types.TimeStep, types.NestedTensor, tf.Tensor]:
        """Takes a step; the loss is 0."""
        _, time_step, policy_state = self._take_step(
            self._agent.collect_policy, time_step, policy_state
        )
        return time_step, policy_state, tf.constant(0.0)

    def _environment_action(self, action: Any) -> Any:
        return rollouts.clipped(action, self._environment.action_spec())

    def _own_variables(self) -> list[tf.Variable]:
        """Returns the variables of the loop and its observers, not the agent's."""
        modules = self._observer_modules()
        observed = [v for each in modules for v in variables.tracked_variables(each)]
        return [self._seed, self._iteration, self._step, *observed]

    def _collected(
        self, num_steps: int, with_reached: bool
    ) -> tuple[trajectory.Trajectory, Any]:
        """Takes steps; returns their frames, and the policy's state before them."""
        number_checks.check_sizes(num_steps=num_steps)
        key = num_steps, with_reached
        device = tf.device(self._placement.collecting_device)
        with loop_checks.short_assertions(), self._own_errors(), device:
            self._start()
            if key not in self._rollouts:
                self._rollouts[key] = self._make_rollout(*key)
            start = self._take_position()
            position, frames = self._rollouts[key](start)
        self._set_position(position)
        self._iteration.assign_add(num_steps)
        return frames, start[1]

    def _make_rollout(self, num_steps: int, with_reached: bool) -> Any:
        """Returns a function that takes `num_steps` steps from a position.

        It returns the position reached, and the frames.
        """

        def rollout(position: tuple[Any, ...]) -> tuple[tuple[Any, ...], Any]:
            with accelerators.graph_for(self._placement.device):
                *reached, frames = self._collect_frames(num_steps, *position)
                if with_reached:
                    frames = rollouts.with_reached(frames, reached[0])
            return tuple(reached), frames

        return fast_function.fast_function(
            rollout,
            autograph=False,
            jit_compile=(self._jit_compile and not self._placement.is_split) or None,
        )
