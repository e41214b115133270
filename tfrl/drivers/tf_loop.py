"""The loop that the drivers of TensorFlow environments share.

`LoopDriver.run_loop` decides how the loop runs. Inside the caller's tf.function, the
loop is one `tf.while_loop` of that graph. Called eagerly, the driver traces the loop
once and keeps it, provided that every observer is known to work in a graph: a
`TFStepMetric`, the method of a replay buffer that stores in TensorFlow, a
`tf.function`, or a `host_observer`. With any other observer the driver steps eagerly,
which is slower, so that plain Python observers get every step and not only the trace.
Inside the caller's tf.function such observers would get the trace alone, so they are an
error there. `tf.config.run_functions_eagerly(True)` always steps eagerly.

As in every tf.function, Python values that the policy reads (an epsilon computed from a
Python counter, say) are frozen by the trace: keep them in variables.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from tfrl.compilation import fast_function
from tfrl.drivers import driver
from tfrl.drivers import observers as observers_lib
from tfrl.environments import py_environment
from tfrl.metrics import tf_metric
from tfrl.policies.saving import saved_model
from tfrl.replay_buffers import replay_buffer
from tfrl.trajectories import time_step as ts
from tfrl.trajectories import trajectory
from tfrl.typing import types
from tfrl.utils.nests import structure
from tfrl.utils.random_numbers import seeds


class LoopDriver(driver.Driver):
    """A driver of a `TFEnvironment` whose loop can be part of a graph."""

    def __init__(
        self,
        env: types.TFEnv,
        policy: types.TFPolicy,
        observers: Sequence[driver.Observer] | None = None,
        transition_observers: Sequence[driver.Observer] | None = None,
        use_function: bool = True,
    ) -> None:
        """Creates a driver; eager calls trace the loop only if `use_function` is True.

        Raises:
          TypeError: If `env` is a Python environment.
          ValueError: If a loaded policy is for other observations.
        """
        if isinstance(env, py_environment.PyEnvironment):
            raise TypeError(
                f"env: got {type(env).__name__}, a Python environment, but "
                f"{type(self).__name__} steps a TFEnvironment; wrap it in "
                "tfrl.environments.TFPyEnvironment, or use PyDriver."
            )
        policy = saved_model.for_environment(policy, env)
        super().__init__(env, policy, observers, transition_observers)
        self._all_observers = [*self.observers, *self.transition_observers]
        self._use_function = use_function and all(
            map(_works_in_graph, self._all_observers)
        )
        self._last_limit: tuple[int, tf.Tensor] | None = None
        self._traced_loop = fast_function.fast_function(self._loop, autograph=False)

    def run_loop(
        self,
        time_step: Any,
        policy_state: Any,
        limits: Any,
        maximum_iterations: Any = None,
        seed: Any = None,
    ) -> tuple[Any, Any]:
        """Runs the loop from `time_step` on; see the module's docstring for how.

        Args:
          time_step: The first time step, `[B, ...]`.
          policy_state: The policy's state at `time_step`; None or `()` takes the
            policy's initial state.
          limits: A nest of numbers in the structure of `_count`'s result. The run ends
            as soon as one counter reaches its limit.
          maximum_iterations: The largest number of batched steps; None sets no limit.
          seed: An integer or int `[2]` that decides the policy's random choices; with
            None they come from the policy's own generator.

        Returns:
          The final time step and policy state.
        """
        if not structure.safe_has_state(policy_state):
            policy_state = self.policy.get_initial_state(self.env.batch_size)
        if not all(map(tf.is_tensor, tf.nest.flatten((time_step, policy_state)))):
            time_step, policy_state = tf.nest.map_structure(
                tf.convert_to_tensor, (time_step, policy_state)
            )
        if maximum_iterations is not None:
            maximum_iterations = tf.cast(maximum_iterations, tf.int32)
        seed = () if seed is None else seeds.as_seed(seed)
        arguments = (
            time_step,
            policy_state,
            self._as_tensors(limits),
            maximum_iterations,
            seed,
        )
        if self._use_function and tf.executing_eagerly():
            with self.env.reraise(), observers_lib.reraise(self._all_observers):
                return self._traced_loop(*arguments)
        return self._loop(*arguments)

    def _as_tensors(self, limits: Any) -> Any:
        """Returns `limits` as int64 scalars; new Python numbers would cause traces."""
        if not tf.executing_eagerly() or not _is_number(limits):
            return tf.nest.map_structure(lambda n: tf.cast(n, tf.int64), limits)
        # Most runs have the same limit as the run before.
        if self._last_limit is None or self._last_limit[0] != limits:
            self._last_limit = limits, tf.constant(limits, tf.int64)
        return self._last_limit[1]

    def _count(self, traj: trajectory.Trajectory) -> Any:
        """Returns how much one step adds to each counter, a nest of int32 scalars."""
        raise NotImplementedError

    def _loop(
        self,
        time_step: Any,
        policy_state: Any,
        limits: Any,
        maximum_iterations: Any,
        seed: Any,
    ) -> tuple[Any, Any]:
        def body(counters: Any, time_step: Any, state: Any, seed: Any) -> tuple:
            action_seed = None
            if tf.is_tensor(seed):
                seed, action_seed = seeds.split_seed(seed, 2)
            if self.env.is_bandit:
                time_step = ts.new_round(time_step)
            action_step = self.policy.action(time_step, state, seed=action_seed)
            next_time_step = self.env.step(action_step.action)
            traj = trajectory.from_transition(time_step, action_step, next_time_step)
            observers_lib.show(self.observers, traj, "observers")
            observers_lib.show(
                self.transition_observers,
                (time_step, action_step, next_time_step),
                "transition_observers",
            )
            counters = tf.nest.map_structure(tf.add, counters, self._count(traj))
            return counters, next_time_step, action_step.state, seed

        counters = tf.nest.map_structure(lambda _: tf.zeros([], tf.int32), limits)
        _, time_step, policy_state, _ = tf.while_loop(
            lambda counters, *_: _all_below(counters, limits),
            body,
            (counters, time_step, policy_state, seed),
            # All observers must see step t before any of them sees step t + 1.
            parallel_iterations=1,
            maximum_iterations=maximum_iterations,
        )
        return time_step, policy_state


def _all_below(counters: Any, limits: Any) -> tf.Tensor:
    """Returns whether every counter is below its limit, a bool scalar."""
    below = tf.nest.map_structure(
        lambda counter, limit: tf.cast(counter, tf.int64) < limit, counters, limits
    )
    return functools.reduce(tf.logical_and, tf.nest.flatten(below))


def _is_number(limits: Any) -> bool:
    return type(limits) is int


def count_steps(traj: trajectory.Trajectory) -> tf.Tensor:
    """Returns the number of environment steps, without boundaries, int32."""
    return tf.math.count_nonzero(tf.logical_not(traj.is_boundary()), dtype=tf.int32)


def count_episodes(env: types.TFEnv, traj: trajectory.Trajectory) -> tf.Tensor:
    """Returns the number of boundaries, without padding, or of a bandit's rounds."""
    ended = traj.is_episode_end() if env.is_bandit else traj.is_reset()
    return tf.math.count_nonzero(ended, dtype=tf.int32)


def _works_in_graph(observer: driver.Observer) -> bool:
    owner = getattr(observer, "__self__", None)
    in_buffer = isinstance(owner, replay_buffer.ReplayBuffer) and owner.works_in_graph
    knows_graphs = in_buffer or observers_lib.calls_python(observer)
    return knows_graphs or isinstance(
        observer, tf_metric.TFStepMetric | tf.types.experimental.PolymorphicFunction
    )
