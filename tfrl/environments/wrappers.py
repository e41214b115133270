"""Wrappers: environments that change another environment's time, actions or numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import tree

from tfrl.environments import py_environment
from tfrl.specs import array_spec
from tfrl.trajectories import time_step as ts

_LAST = int(ts.StepType.LAST)


class PyEnvironmentBaseWrapper(py_environment.PyEnvironment):
    """Hands everything on to the environment inside; subclasses change some of it.

    Attributes that are not found here are looked up in the environment inside, so the
    outermost wrapper answers for the whole chain.
    """

    def __init__(
        self, env: py_environment.PyEnvironment, handle_auto_reset: bool = True
    ):
        """Wraps `env`; for `handle_auto_reset` see `PyEnvironment`."""
        super().__init__(handle_auto_reset)
        self._env = env

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or "_env" not in self.__dict__:
            raise AttributeError(name)
        return getattr(self._env, name)

    @property
    def batched(self) -> bool:
        """Whether the environment inside is batched."""
        return self._env.batched

    @property
    def batch_size(self) -> int | None:
        """The batch size of the environment inside."""
        return self._env.batch_size

    def wrapped_env(self) -> py_environment.PyEnvironment:
        """Returns the environment inside."""
        return self._env

    def observation_spec(self) -> Any:
        """The specs of the observations."""
        return self._env.observation_spec()

    def action_spec(self) -> Any:
        """The specs of the actions."""
        return self._env.action_spec()

    def reward_spec(self) -> Any:
        """The specs of the rewards."""
        return self._env.reward_spec()

    def discount_spec(self) -> Any:
        """The spec of the discount."""
        return self._env.discount_spec()

    def get_info(self) -> Any:
        """Returns the info of the environment inside."""
        return self._env.get_info()

    def seed(self, seed: Any) -> Any:
        """Seeds the environment inside."""
        return self._env.seed(seed)

    def render(self, mode: str = "rgb_array") -> Any:
        """Renders the environment inside."""
        return self._env.render(mode)

    def close(self) -> None:
        """Closes the environment inside."""
        self._env.close()

    def get_state(self) -> Any:
        """Returns the state of the wrapper and of the environment inside."""
        return {
            "wrapper": self._get_wrapper_state(),
            "env": py_environment.capture_state(self._env),
        }

    def set_state(self, state: Any) -> None:
        """Restores what `get_state` returned."""
        py_environment.restore_state(self._env, state["env"])
        self._set_wrapper_state(state["wrapper"])

    def _get_wrapper_state(self) -> Any:
        """Returns what this wrapper itself has to save; nothing by default."""

    def _set_wrapper_state(self, state: Any) -> None:
        """Restores what `_get_wrapper_state` returned."""

    def _reset(self) -> ts.TimeStep:
        return self._env.reset()

    def _step(self, action: Any) -> ts.TimeStep:
        return self._env.step(action)


class TimeLimit(PyEnvironmentBaseWrapper):
    """Truncates episodes after a number of steps.

    Only the step type changes: the discount stays, so the value of the last
    observation is bootstrapped, unless the environment terminates at that very step.
    """

    def __init__(
        self,
        env: py_environment.PyEnvironment,
        duration: int,
        handle_auto_reset: bool = True,
    ):
        """Limits `env` to `duration` steps an episode.

        Raises:
          ValueError: If `duration` is not positive, or `env` is batched.
        """
        super().__init__(env, handle_auto_reset)
        if duration <= 0:
            raise ValueError(
                f"duration: got {duration}, expected a positive number of steps; leave "
                "the wrapper out for no limit."
            )
        if env.batched:
            raise ValueError(
                "env: got a batched environment, expected a single one, since one "
                "member cannot be reset alone; limit the members, such as with the "
                "max_episode_steps of vector_py_environment.load."
            )
        self._duration = duration
        self._num_steps: int | None = None

    @property
    def duration(self) -> int:
        """After how many steps an episode is truncated."""
        return self._duration

    def _get_wrapper_state(self) -> Any:
        return self._num_steps

    def _set_wrapper_state(self, state: Any) -> None:
        self._num_steps = state

    def _reset(self) -> ts.TimeStep:
        self._num_steps = 0
        return self._env.reset()

    def _step(self, action: Any) -> ts.TimeStep:
        if self._num_steps is None:
            return self.reset()
        time_step = self._env.step(action)
        self._num_steps += 1
        if self._num_steps >= self._duration:
            time_step = time_step._replace(step_type=ts.StepType.LAST)
        if int(time_step.step_type) == _LAST:
            self._num_steps = None
        return time_step


class RunStats(PyEnvironmentBaseWrapper):
    """Counts steps and episodes, those of all members of a batched environment.

    A LAST step counts as an episode, a FIRST step as a reset.
    """

    def __init__(self, env: py_environment.PyEnvironment):
        """Counts what happens in `env` from now on."""
        super().__init__(env)
        self._episodes = 0
        self._resets = 0
        self._total_steps = 0
        self._episode_steps: Any = 0

    @property
    def episodes(self) -> int:
        """How many episodes have ended."""
        return self._episodes

    @property
    def resets(self) -> int:
        """How many episodes have begun."""
        return self._resets

    @property
    def total_steps(self) -> int:
        """How many steps were taken, resets not among them."""
        return self._total_steps

    @property
    def episode_steps(self) -> Any:
        """How many steps the current episode has, an array `[B]` if batched."""
        return self._episode_steps

    def _get_wrapper_state(self) -> Any:
        return self._episodes, self._resets, self._total_steps, self._episode_steps

    def _set_wrapper_state(self, state: Any) -> None:
        self._episodes, self._resets, self._total_steps, self._episode_steps = state

    def _reset(self) -> ts.TimeStep:
        return self._count(self._env.reset())

    def _step(self, action: Any) -> ts.TimeStep:
        return self._count(self._env.step(action))

    def _count(self, time_step: ts.TimeStep) -> ts.TimeStep:
        first = np.asarray(time_step.is_first())
        self._resets += int(first.sum())
        self._episodes += int(np.sum(time_step.is_last()))
        self._total_steps += int((~first).sum())
        steps = np.where(first, 0, np.asarray(self._episode_steps) + 1)
        self._episode_steps = steps if steps.ndim else int(steps)
        return time_step


class ActionDiscretizeWrapper(PyEnvironmentBaseWrapper):
    """Offers a number of evenly spaced values of each element of a continuous action.

    The discrete action is int32, of the same shape as the continuous one, and a scalar
    where that has shape `(1,)`.
    """

    def __init__(
        self,
        env: py_environment.PyEnvironment,
        num_actions: Any,
        handle_auto_reset: bool = True,
    ):
        """Wraps `env`, whose actions are a single array with finite bounds.

        Args:
          env: The environment.
          num_actions: How many values each element gets, at least 2: one number, or an
            array that broadcasts to the shape of the action.
          handle_auto_reset: See `PyEnvironment`.

        Raises:
          ValueError: If `env` has other actions, or `num_actions` does not fit.
        """
        super().__init__(env, handle_auto_reset)
        self._continuous_spec = _single_bounded_spec(env, type(self).__name__)
        shape = self._continuous_spec.shape
        counts = _broadcast_counts(num_actions, shape)
        low, high = (
            np.broadcast_to(bound, shape).ravel()
            for bound in (self._continuous_spec.minimum, self._continuous_spec.maximum)
        )
        self._values = [
            np.linspace(*limits).astype(self._continuous_spec.dtype)
            for limits in zip(low, high, counts.ravel(), strict=True)
        ]
        equal = counts.size > 0 and np.all(counts == counts.flat[0])
        self._discrete_spec = array_spec.BoundedArraySpec(
            () if shape == (1,) else shape,
            np.int32,
            minimum=0,
            maximum=(counts.flat[0] if equal else counts) - 1,
            name=self._continuous_spec.name,
        )

    def action_spec(self) -> array_spec.BoundedArraySpec:
        """The spec of the discrete actions."""
        return self._discrete_spec

    def _step(self, action: Any) -> ts.TimeStep:
        values = self._to_continuous(np.asarray(action))
        return self._env.step(tree.unflatten_as(self._env.action_spec(), [values]))

    def _to_continuous(self, action: np.ndarray) -> np.ndarray:
        spec = self._discrete_spec
        outer = () if self.batch_size is None else (self.batch_size,)
        if action.shape != outer + spec.shape:
            raise ValueError(
                f"action: got shape {action.shape}, expected {outer + spec.shape}; "
                f"take actions that follow {spec}."
            )
        if np.any(action < spec.minimum) or np.any(action > spec.maximum):
            raise ValueError(
                f"action: got {action}, expected integers from {spec.minimum} to "
                f"{spec.maximum}; take actions that follow the action spec."
            )
        flat = action.reshape(*outer, len(self._values))
        columns = [values[flat[..., i]] for i, values in enumerate(self._values)]
        return np.stack(columns, -1).reshape(outer + self._continuous_spec.shape)


class ActionClipWrapper(PyEnvironmentBaseWrapper):
    """Clips actions to the bounds of their specs before it applies them."""

    def _step(self, action: Any) -> ts.TimeStep:
        def clip(spec: Any, value: Any) -> Any:
            if not array_spec.is_bounded(spec):
                return value
            return np.clip(value, spec.minimum, spec.maximum)

        spec = self._env.action_spec()
        return self._env.step(tree.map_structure_up_to(spec, clip, spec, action))


class ActionOffsetWrapper(PyEnvironmentBaseWrapper):
    """Shifts discrete actions so that they start at 0, as a Q-network numbers them."""

    def __init__(
        self, env: py_environment.PyEnvironment, handle_auto_reset: bool = True
    ):
        """Wraps `env`, whose actions are a single array of bounded integers.

        Raises:
          ValueError: If `env` has other actions.
        """
        super().__init__(env, handle_auto_reset)
        spec = env.action_spec()
        if not (array_spec.is_bounded(spec) and array_spec.is_discrete(spec)):
            raise ValueError(
                f"env: got the action spec {spec}, expected a single "
                "BoundedArraySpec of integers, which alone has a first action; leave "
                "ActionOffsetWrapper out."
            )
        self._offset = spec.minimum
        self._zero_based_spec = array_spec.BoundedArraySpec(
            spec.shape,
            spec.dtype,
            minimum=np.zeros_like(spec.minimum),
            maximum=spec.maximum - spec.minimum,
            name=spec.name,
        )

    def action_spec(self) -> array_spec.BoundedArraySpec:
        """The spec of the actions, from 0."""
        return self._zero_based_spec

    def _step(self, action: Any) -> ts.TimeStep:
        return self._env.step(np.asarray(action + self._offset, self._offset.dtype))


def _single_bounded_spec(
    env: py_environment.PyEnvironment, wrapper: str
) -> array_spec.BoundedArraySpec:
    specs = tree.flatten(env.action_spec())
    if len(specs) == 1 and array_spec.is_bounded(specs[0]):
        spec = specs[0]
        limit = np.finfo(spec.dtype) if array_spec.is_continuous(spec) else None
        if (
            limit
            and np.all(spec.minimum > limit.min)
            and np.all(spec.maximum < limit.max)
        ):
            return spec
    raise ValueError(
        f"env: got the action spec {env.action_spec()}, expected a single "
        f"BoundedArraySpec of floats with finite bounds, which {wrapper} can divide; "
        "flatten or bound the actions first."
    )


def _broadcast_counts(num_actions: Any, shape: tuple[int, ...]) -> np.ndarray:
    counts = np.asarray(num_actions)
    try:
        counts = np.broadcast_to(counts, shape)
    except ValueError as error:
        raise ValueError(
            f"num_actions: got shape {counts.shape}, expected one that broadcasts to "
            f"the action's shape {shape}; give one number for all elements ({error})."
        ) from error
    if not np.all(counts >= 2):
        raise ValueError(
            f"num_actions: got {num_actions}, expected at least 2 values for each "
            "element; raise it."
        )
    return counts
