"""Wrappers for `TFEnvironment`s. `wrappers` has the wrappers for `PyEnvironment`s."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import tensorflow as tf
import tree

from tfrl.environments import tf_environment
from tfrl.environments.boundary import action_specs
from tfrl.specs import tensor_spec
from tfrl.trajectories import time_step as ts
from tfrl.utils import mixins


class TFEnvironmentBaseWrapper(mixins.Forwards, tf_environment.TFEnvironment):
    """Passes all calls on to the wrapped environment; subclasses change some of them.

    Attributes that are not found here are looked up in the wrapped environment.
    """

    def __init__(self, env: tf_environment.TFEnvironment):
        """Wraps `env`.

        Args:
          env: The environment.

        Raises:
          TypeError: If `env` is not a `TFEnvironment`.
        """
        if not isinstance(env, tf_environment.TFEnvironment):
            raise TypeError(
                f"env: got {env!r} of type {type(env).__name__}, expected a "
                "TFEnvironment; wrap a PyEnvironment in TFPyEnvironment first."
            )
        super().__init__(env.time_step_spec(), env.action_spec(), env.batch_size)
        self._env = env

    def wrapped_env(self) -> tf_environment.TFEnvironment:
        """Returns the wrapped environment."""
        return self._env

    def change(self, name: str, value: Any, calls: bool = False) -> None:
        """Sets an attribute of the wrapped environment; see `TFEnvironment.change`."""
        self._env.change(name, value, calls)

    @property
    def is_bandit(self) -> bool:
        """Whether the wrapped environment is a bandit."""
        return self._env.is_bandit

    @property
    def is_seeded(self) -> bool:
        """Whether the wrapped environment was given a seed."""
        return self._env.is_seeded

    def seed(self, seed: Any) -> Any:
        """Seeds the wrapped environment."""
        return self._env.seed(seed)

    def time_step_spec(self) -> Any:
        """The specs of the time steps."""
        return self._env.time_step_spec()

    def action_spec(self) -> Any:
        """The specs of the actions."""
        return self._env.action_spec()

    def observation_spec(self) -> Any:
        """The specs of the observations."""
        return self._env.observation_spec()

    @property
    def batched(self) -> bool:
        """Whether the wrapped environment is batched."""
        return self._env.batched

    @property
    def batch_size(self) -> int:
        """The batch size of the wrapped environment."""
        return self._env.batch_size

    @property
    def calls_python(self) -> bool:
        """Whether the environment inside calls Python."""
        return self._env.calls_python

    @property
    def python_seconds(self) -> float:
        """The seconds that the environment inside has spent in Python code."""
        return self._env.python_seconds

    def render(self, mode: str = "rgb_array") -> Any:
        """Renders the wrapped environment."""
        return self._env.render(mode)

    def close(self) -> None:
        """Closes the wrapped environment."""
        self._env.close()

    def get_state(self) -> Any:
        """Returns the state of the wrapped environment."""
        return self._env.get_state()

    def set_state(self, state: Any) -> None:
        """Restores a state that `get_state` returned."""
        self._env.set_state(state)

    @contextlib.contextmanager
    def reraise(self) -> Iterator[None]:
        """Raises exceptions of the wrapped environment; see `TFEnvironment`."""
        with self._env.reraise():
            yield

    def has_failed(self) -> tf.Tensor:
        """Whether the wrapped environment has raised in a compiled program."""
        return self._env.has_failed()

    def _current_time_step(self) -> ts.TimeStep:
        return self._env.current_time_step()

    def _reset(self) -> ts.TimeStep:
        return self._env.reset()

    def _step(self, action: Any) -> ts.TimeStep:
        return self._env.step(action)


class OneHotActionWrapper(TFEnvironmentBaseWrapper):
    """Takes one-hot vectors instead of discrete actions; other actions do not change.

    The largest element of a vector chooses the action; on a tie, the first of these.
    """

    def __init__(self, env: tf_environment.TFEnvironment):
        """Wraps `env`.

        Args:
          env: The environment, whose actions may be any nest.

        Raises:
          TypeError: If `env` is not a `TFEnvironment`.
          ValueError: If a discrete action has more than one dimension, no bounds, or
            elements with different numbers of values.
        """
        super().__init__(env)
        self._one_hot_spec = tree.map_structure_with_path(
            _one_hot_spec, env.action_spec()
        )

    def action_spec(self) -> Any:
        """The specs of the actions, with vectors `[..., n]` for discrete ones."""
        return self._one_hot_spec

    def _step(self, action: Any) -> ts.TimeStep:
        spec = self._env.action_spec()
        flat = tf_environment.flatten(action, self._one_hot_spec, self.batch_size)
        inner = [
            _to_choice(leaf_spec, leaf) if tensor_spec.is_discrete(leaf_spec) else leaf
            for leaf_spec, leaf in zip(tree.flatten(spec), flat, strict=True)
        ]
        return self._env.step(tree.unflatten_as(spec, inner))


def _to_choice(spec: Any, one_hot: tf.Tensor) -> tf.Tensor:
    index = tf.argmax(one_hot, axis=-1, output_type=tf.int64)
    return tf.cast(index + tf.cast(spec.minimum, tf.int64), spec.dtype)


def _one_hot_spec(path: tuple[Any, ...], spec: Any) -> Any:
    if not tensor_spec.is_discrete(spec):
        return spec
    array_spec = tensor_spec.to_array_spec(spec)
    return tensor_spec.from_spec(action_specs.one_hot_spec(path, array_spec))
