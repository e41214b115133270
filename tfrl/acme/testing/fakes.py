"""Acme's fake environments and their transitions, to test the rest of a program.

Values are those that specs generate: zeros, or the least.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import dm_env
import numpy as np
import tensorflow as tf
import tree

from tfrl.acme import specs, types
from tfrl.replay_service.replay_sample import ReplaySample, SampleInfo


class Environment(dm_env.Environment):
    """An environment of given specs, which checks its actions."""

    def __init__(
        self, spec: specs.EnvironmentSpec, *, episode_length: int = 25
    ) -> None:
        """Creates the environment; with an `episode_length` of 0, no episode ends."""
        self._spec = spec
        self._length = episode_length
        self._steps = 0

    def reset(self) -> dm_env.TimeStep:
        """Starts an episode."""
        self._steps = 1
        return dm_env.restart(_generate(self._spec.observations))

    def step(self, action: types.NestedArray) -> dm_env.TimeStep:
        """Takes a step, or starts an episode where there is none."""
        if not self._steps:
            return self.reset()
        _validate(self._spec.actions, action)
        is_last = self._steps == self._length
        self._steps = 0 if is_last else self._steps + 1
        kind = dm_env.StepType.LAST if is_last else dm_env.StepType.MID
        observation, _, *numbers = map(_generate, self._spec)
        return dm_env.TimeStep(kind, *numbers, observation)

    def observation_spec(self) -> Any:
        """The specs of the observations."""
        return self._spec.observations

    def action_spec(self) -> Any:
        """The specs of the actions."""
        return self._spec.actions

    def reward_spec(self) -> Any:
        """The specs of the rewards."""
        return self._spec.rewards

    def discount_spec(self) -> Any:
        """The specs of the discounts."""
        return self._spec.discounts


class DiscreteEnvironment(Environment):
    """An environment of discrete observations and actions.

    A nest of numbers as `num_observations` makes a nest of observations.
    """

    def __init__(
        self,
        *,
        num_actions: int = 1,
        num_observations: Any = 1,
        action_dtype: Any = np.int32,
        obs_dtype: Any = np.int32,
        obs_shape: Sequence[int] = (),
        discount_spec: Any = None,
        reward_spec: Any = None,
        **kwargs: Any,
    ) -> None:
        """Creates the environment; for `kwargs` see `Environment`."""

        def observed(number: int) -> specs.BoundedArray:
            return specs.BoundedArray(tuple(obs_shape), obs_dtype, 0, number - 1)

        spec = specs.EnvironmentSpec(
            tree.map_structure(observed, num_observations),
            specs.DiscreteArray(num_actions, action_dtype),
            reward_spec or specs.Array((), np.float32),
            discount_spec or specs.BoundedArray((), np.float32, 0.0, 1.0),
        )
        super().__init__(spec, **kwargs)


NestedDiscreteEnvironment = DiscreteEnvironment


class ContinuousEnvironment(Environment):
    """An environment of continuous observations and actions.

    These are vectors, or scalars if their dimension is 0.
    """

    def __init__(
        self,
        *,
        action_dim: int = 1,
        observation_dim: int = 1,
        bounded: bool = False,
        dtype: Any = np.float32,
        reward_dtype: Any = np.float32,
        **kwargs: Any,
    ) -> None:
        """Creates the environment; for `kwargs` see `Environment`."""
        observed, acted = ((n,) * (n > 0) for n in (observation_dim, action_dim))
        free = specs.Array(acted, dtype)
        spec = specs.EnvironmentSpec(
            specs.Array(observed, dtype),
            specs.BoundedArray(acted, dtype, -1.0, 1.0) if bounded else free,
            specs.Array((), reward_dtype),
            specs.BoundedArray((), reward_dtype, 0.0, 1.0),
        )
        super().__init__(spec, **kwargs)


def transition_dataset(environment: dm_env.Environment) -> tf.data.Dataset:
    """Returns an endless dataset of one sample: a `ReplaySample` of a `Transition`."""
    return transition_dataset_from_spec(specs.make_environment_spec(environment))


def transition_dataset_from_spec(spec: specs.EnvironmentSpec) -> tf.data.Dataset:
    """Returns the dataset of `transition_dataset` for environments of `spec`."""
    observation, action, reward, discount = map(_generate, spec)
    info = SampleInfo(np.uint64(0), 1.0, np.int64(1), 1.0, np.int32(1))
    data = types.Transition(observation, action, reward, discount, observation)
    return tf.data.Dataset.from_tensors(ReplaySample(info, data)).repeat()


def _validate(spec: Any, value: Any) -> None:
    tree.map_structure(lambda leaf, part: leaf.validate(part), spec, value)


def _generate(spec: Any) -> Any:
    return tree.map_structure(lambda leaf: leaf.generate_value(), spec)
