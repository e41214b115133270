"""`BanditTFEnvironment`, the base class of a user's bandits in TensorFlow."""

from __future__ import annotations

import abc
from typing import Any

import tensorflow as tf

from tfrl.compilation import stored_values
from tfrl.environments import tf_environment
from tfrl.specs import tensor_spec
from tfrl.trajectories import time_step as ts
from tfrl.utils.random_numbers import seeds


class SeedRow(tf.Module):
    """A row of seeds that belong to one number, as a variable that can be saved."""

    def __init__(self, seed: int | None = None) -> None:
        """Starts the row; see `start`."""
        # The key made from the seed, and the number of seeds drawn.
        self._state = tf.Variable([0, 0], dtype=tf.int64, trainable=False)
        self.start(seed)

    def start(self, seed: int | None) -> None:
        """Begins the row of a seed; None follows `tf.random.set_seed`."""
        self._state.assign([seeds.draw_number() if seed is None else seed, 0])

    def next(self) -> tf.Tensor:
        """Returns the next seed, int64 `[2]`."""
        seed = self._state.read_value()
        self._state.assign(seed + tf.constant([0, 1], tf.int64))
        return seed


class BanditTFEnvironment(tf_environment.TFEnvironment, tf.Module):
    """A bandit whose subclass writes `_observe` and `_apply_action` in TensorFlow.

    A subclass takes the random numbers of both from `self._next_seed()`, and keeps what
    else changes in variables that are its attributes. It then has a seed, a state that
    can be saved, and loops that compile it. `rounds.dynamics` makes a bandit of pure
    functions instead, of which sweeps run many copies.
    """

    def __init__(
        self,
        time_step_spec: Any = None,
        action_spec: Any = None,
        batch_size: int = 1,
        name: str | None = None,
        *,
        seed: int | None = None,
    ) -> None:
        """Makes the variables of the time step.

        Args:
          time_step_spec: The `TimeStep` of specs, without the batch.
          action_spec: The nest of specs of the actions, without the batch.
          batch_size: The number of members, which play a round each in a step.
          name: The module's name.
          seed: The seed of the random numbers; None follows `tf.random.set_seed`.
        """
        tf.Module.__init__(self, name=name)
        super().__init__(time_step_spec, action_spec, batch_size)
        self._latest = stored_values.StoredNest(
            tensor_spec.add_outer_dims_nest(time_step_spec, (batch_size,))
        )
        # Whether there is a time step.
        self._has_begun = tf.Variable(False, trainable=False)
        self._is_seeded = seed is not None
        self._seeds = SeedRow(seed)

    @property
    def is_bandit(self) -> bool:
        """Always True: each step is a whole round."""
        return True

    @property
    def is_seeded(self) -> bool:
        """Whether the environment was given a seed."""
        return self._is_seeded

    def seed(self, seed: int | None = None) -> None:
        """Starts the random numbers from a seed; it cannot be called in a graph."""
        self._is_seeded = seed is not None
        self._seeds.start(seed)
        self._has_begun.assign(False)

    def get_state(self) -> Any:
        """Returns the values of all variables, for `set_state`."""
        return [variable.numpy() for variable in self.variables]

    def set_state(self, state: Any) -> None:
        """Restores a state that `get_state` returned."""
        tf_environment.check_state(state, self.variables)
        for variable, value in zip(self.variables, state, strict=True):
            variable.assign(value)

    def _next_seed(self) -> tf.Tensor:
        """Returns the seed of the next random numbers, int64 `[2]`."""
        return self._seeds.next()

    def _current_time_step(self) -> ts.TimeStep:
        return tf.cond(self._has_begun, self._latest.read, self._reset)

    def _reset(self) -> ts.TimeStep:
        reward_spec = self.time_step_spec().reward
        return self._keep(ts.restart(self._observe(), self.batch_size, reward_spec))

    def _step(self, action: Any) -> ts.TimeStep:
        reward = self._apply_action(action)
        return self._keep(ts.termination(self._observe(), reward))

    def _keep(self, time_step: ts.TimeStep) -> ts.TimeStep:
        """Stores a time step, and returns it."""
        self._latest.assign(time_step)
        self._has_begun.assign(True)
        return time_step

    @abc.abstractmethod
    def _apply_action(self, action: Any) -> Any:
        """Returns the rewards of actions `[B, ...]`, a nest like the reward's spec."""

    @abc.abstractmethod
    def _observe(self) -> Any:
        """Returns the observations of the next round, `[B, ...]`."""
