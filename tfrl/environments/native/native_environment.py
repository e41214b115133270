"""`NativeEnvironment`: runs `Dynamics` as a `TFEnvironment`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf

from tfrl.compilation import context, stored_values, trace_counts
from tfrl.environments import tf_environment
from tfrl.environments.native import dynamics_checks
from tfrl.environments.native.dynamics import Dynamics
from tfrl.specs import matching
from tfrl.trajectories import time_step as ts
from tfrl.utils import mixins, nest_utils, number_checks
from tfrl.utils.random_numbers import seeds

_FIRST, _LAST = int(ts.StepType.FIRST), int(ts.StepType.LAST)
# The step type of a time step that was not returned yet. `step` then resets, as after
# LAST; `step_type % _UNSEEN` turns it into FIRST and leaves the other step types.
_UNSEEN = 3
_ZERO, _ONE = np.int64(0), np.int64(1)
# Makes the random numbers differ from the numbers of other users of the same seed.
_SALT = 0x6E61_7469

# Nothing here or in pure dynamics needs AutoGraph, and converting it takes seconds.
_as_written = tf.autograph.experimental.do_not_convert


class NativeEnvironment(tf_environment.TFEnvironment, tf.Module, mixins.Untracked):
    """Steps `Dynamics` for a whole batch, in straight-line TensorFlow.

    The whole state is in variables that are only read and assigned; a step has no
    branch and no loop, but those of the dynamics' own programs, and no stateful random
    operation. It runs eagerly, in a `tf.function`, and compiled by XLA.

    Each member has its own episode. A termination is a LAST step with discount 0, and a
    truncation, by the time limit or the dynamics, is a LAST step with discount 1. The
    step after a LAST step ignores that member's action and returns its next FIRST step.
    The random numbers of a call depend only on the seed and the number of calls before
    it.

    Before the first `reset`, `step` and `current_time_step` reset, as in every
    environment of this package.
    """

    def __init__(
        self, dynamics: Dynamics, batch_size: int = 1, seed: int | None = None
    ):
        """Makes the environment.

        Args:
          dynamics: The rules.
          batch_size: The number of members.
          seed: The seed of the random numbers; None follows `tf.random.set_seed`.

        Raises:
          ValueError: If `batch_size` is not a positive multiple of the dynamics'
            `members`, or a function of `dynamics` cannot be traced, is not pure, or
            does not match its specs.
          TypeError: If the `step` of `dynamics` does not return an `Outcome`.
        """
        number_checks.check_sizes(batch_size=batch_size)
        if batch_size % dynamics.members:
            raise ValueError(
                f"batch_size: got {batch_size}, expected a multiple of the "
                f"{dynamics.members} agents of an environment."
            )
        tf.Module.__init__(self)
        super().__init__(batch_size=batch_size)
        self._dynamics = dynamics
        state_spec = dynamics_checks.check(dynamics, batch_size)
        self._set_untracked("_action_spec", dynamics.action_spec)
        self._set_untracked(
            "_time_step_spec", ts.time_step_spec(dynamics.observation_spec)
        )
        self._set_untracked("_state_spec", state_spec)
        self._state = stored_values.StoredNest(state_spec, "state")
        # Programs may use only variables that some part holds.
        self._levels = dict(dynamics.levels)
        self._opponents = dynamics.opponents
        # A GPU has no variables of int32.
        self._elapsed = _variable([batch_size], tf.int64, "elapsed")
        self._step_type = _variable([batch_size], tf.int64, "step_type")
        self._reward = _variable([batch_size], tf.float32, "reward")
        self._discount = _variable([batch_size], tf.float32, "discount")
        # The key made from the seed, and the number of calls.
        self._random = _variable([2], tf.int64, "random")
        # Used by eager calls, which would otherwise run operation by operation.
        self._step_function = tf.function(
            trace_counts.of_one_object(self._advance), autograph=False
        )
        self.seed(seed)

    @property
    def dynamics(self) -> Dynamics:
        """The dynamics of this environment."""
        return self._dynamics

    @property
    def is_bandit(self) -> bool:
        """Whether the dynamics are those of a bandit."""
        return self._dynamics.is_bandit

    @property
    def held_fields(self) -> tuple[str, ...]:
        """The fields of the time step that are in variables.

        They are all fields if the observation is the state. Otherwise it is computed
        from the state, and another program may round it in another way.
        """
        fields = ts.TimeStep._fields
        if self._dynamics.observe is None:
            return fields
        return tuple(name for name in fields if name != "observation")

    @property
    def compute_reward(self) -> Callable[[Any, Any], Any] | None:
        """The dynamics' reward function of goals, on tensors; None without goals."""
        return self._dynamics.compute_reward

    @property
    def is_seeded(self) -> bool:
        """Whether the environment was given a seed."""
        return self._is_seeded

    def seed(self, seed: int | None = None) -> None:
        """Resets everything to the state of a new environment with this seed.

        It cannot be called in a graph.

        Args:
          seed: See the constructor.
        """
        self._is_seeded = seed is not None
        self._random.assign([_key(seed), 0])
        self._reset()
        self._step_type.assign(_filled(self._batch_size, _UNSEEN))

    def change(self, name: str, value: Any, calls: bool = False) -> None:
        """Assigns to one of the dynamics' `levels`; see `TFEnvironment.change`."""
        if calls or name not in self._levels:
            raise AttributeError(
                f"{name}: expected one of the dynamics' levels, {list(self._levels)}, "
                "since a program has read all else; read a tf.Variable in the "
                "dynamics, and give it to Dynamics(levels={name: variable})."
            )
        self._levels[name].assign(value)

    def physical_state(self) -> Any:
        """Returns the state of the dynamics, a nest of tensors `[B, ...]`."""
        return self._state.read()

    @_as_written
    def reset_to(self, state: Any) -> ts.TimeStep:
        """Starts an episode of every member from `state`; returns the FIRST steps.

        Args:
          state: A nest like `physical_state()`, `[B, ...]`.

        Raises:
          ValueError: If the structure or a shape differs.
        """
        nest_utils.assert_same_structure(
            state, self._state_spec, message="state: not like the physical state"
        )
        specs = tf.nest.flatten(self._state_spec)
        tensors = [
            tf.convert_to_tensor(value, spec.dtype)
            for value, spec in zip(tf.nest.flatten(state), specs, strict=True)
        ]
        for tensor, spec in zip(tensors, specs, strict=True):
            matching.check(
                "state", tensor, spec, remedy="give one state for each member"
            )
        return self._begin(tf.nest.pack_sequence_as(self._state_spec, tensors))

    def render(self, mode: str = "rgb_array") -> np.ndarray:
        """Returns pictures, uint8 `[B, height, width, 3]`.

        It cannot be called in a graph.

        Raises:
          ValueError: If `mode` is not "rgb_array".
          NotImplementedError: If the dynamics have no `render`.
        """
        if mode != "rgb_array":
            raise ValueError(
                f"mode: got {mode!r}, expected 'rgb_array', because native "
                "environments have no window; show the pictures yourself."
            )
        if self._dynamics.render is None:
            return super().render(mode)
        states = tf.nest.map_structure(lambda t: t.numpy(), self.physical_state())
        return np.stack(
            [
                self._dynamics.render(
                    tf.nest.map_structure(lambda x, i=i: x[i], states)
                )
                for i in range(self._batch_size)
            ]
        )

    def get_state(self) -> Any:
        """Returns the state as arrays, for `set_state`.

        It cannot be called in a graph.
        """
        state = tf.nest.flatten(self.physical_state())
        return [value.numpy() for value in [*state, *self._other_variables()]]

    def set_state(self, state: Any) -> None:
        """Restores a state that `get_state` returned."""
        others = self._other_variables()
        own = tf.nest.flatten(self.physical_state())
        tf_environment.check_state(state, [*own, *others])
        self._state.assign(
            tf.nest.pack_sequence_as(self._state_spec, state[: -len(others)])
        )
        for variable, value in zip(others, state[-len(others) :], strict=True):
            variable.assign(value)

    @_as_written
    def _current_time_step(self) -> ts.TimeStep:
        step_type = self._step_type.read_value() % _UNSEEN
        self._step_type.assign(step_type)
        return ts.TimeStep(
            tf.cast(step_type, tf.int32),
            self._reward.read_value(),
            self._discount.read_value(),
            self._dynamics.observation(self.physical_state()),
        )

    @_as_written
    def _reset(self) -> ts.TimeStep:
        random = self._draw(self._dynamics.num_initial_randoms)
        return self._begin(self._dynamics.initial(random))

    @_as_written
    def _step(self, action: Any) -> ts.TimeStep:
        flat = tf_environment.flatten(action, self._action_spec, self._batch_size)
        if tf.executing_eagerly():
            return self._step_function(flat)
        return self._advance(flat)

    def _advance(self, flat_action: list[tf.Tensor]) -> ts.TimeStep:
        """Steps the members that run, and resets the others."""
        dynamics = self._dynamics
        action = tf.nest.pack_sequence_as(self._action_spec, flat_action)
        initial_random, step_random = self._split(
            self._draw(dynamics.num_initial_randoms + dynamics.num_step_randoms)
        )
        runs = self._step_type.read_value() < (_UNSEEN if dynamics.is_bandit else _LAST)
        outcome = dynamics.step(self.physical_state(), action, step_random)
        if dynamics.restart is None:
            initial = dynamics.initial(initial_random)
            state = nest_utils.where(runs, outcome.state, initial)
        else:
            over = tf.logical_not(runs)
            state = dynamics.restart(outcome.state, over, initial_random)
        terminated = tf.logical_and(runs, outcome.terminated)
        limit = dynamics.max_episode_steps
        # Without a limit the count stays at 1, where it cannot overflow.
        count = _ONE if limit is None else self._elapsed.read_value() + _ONE
        elapsed = tf.where(runs, count, _ZERO)
        ends = (
            terminated if limit is None else tf.logical_or(terminated, elapsed >= limit)
        )
        if outcome.truncated is not None:
            ends = tf.logical_or(ends, tf.logical_and(runs, outcome.truncated))
        # FIRST is 0 and MID is 1.
        step_type = tf.where(ends, np.int64(_LAST), tf.minimum(elapsed, _ONE))
        return self._write(
            state,
            elapsed,
            step_type,
            reward=tf.where(runs, outcome.reward, 0.0),
            discount=tf.where(terminated, 0.0, 1.0),
        )

    def _begin(self, state: Any) -> ts.TimeStep:
        """Starts the episodes of all members from `state`."""
        size = [self._batch_size]
        return self._write(
            state,
            elapsed=tf.zeros(size, tf.int64),
            step_type=_filled(self._batch_size, _FIRST),
            reward=tf.zeros(size),
            discount=tf.ones(size),
        )

    def _write(
        self,
        state: Any,
        elapsed: tf.Tensor,
        step_type: tf.Tensor,
        reward: tf.Tensor,
        discount: tf.Tensor,
    ) -> ts.TimeStep:
        """Assigns the results of a call to the variables, and returns its time step."""
        reward = context.assert_finite(
            reward,
            "reward: got NaN or infinity from the step of the Dynamics, expected "
            "finite numbers; correct its reward",
        )
        self._state.assign(state)
        values = [elapsed, step_type, reward, discount]
        for variable, value in zip(self._other_variables()[:-1], values, strict=True):
            variable.assign(value)
        observation = self._dynamics.observation(state)
        step_type = tf.cast(step_type, tf.int32)
        return ts.TimeStep(step_type, reward, discount, observation)

    def _draw(self, number: int) -> tf.Tensor:
        """Draws float32 `[B, number]`, and counts the call."""
        if not number:
            return tf.zeros([self._batch_size, 0])
        random = self._random.read_value()
        self._random.assign(random + np.array([0, 1], np.int64))
        return seeds.uniform(random, [self._batch_size, number])

    def _split(self, random: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """Splits the random numbers into parts for `initial` and for `step`."""
        number = self._dynamics.num_initial_randoms
        if not self._dynamics.num_step_randoms:
            return random, tf.zeros([self._batch_size, 0])
        return random[:, :number], random[:, number:]

    def _other_variables(self) -> list[tf.Variable]:
        """Returns the variables that do not hold the state of the dynamics."""
        return [
            self._elapsed,
            self._step_type,
            self._reward,
            self._discount,
            self._random,
        ]


def _variable(shape: Any, dtype: tf.DType, name: str) -> tf.Variable:
    return tf.Variable(tf.zeros(shape, dtype), trainable=False, name=name)


def _filled(size: int, value: int) -> tf.Tensor:
    return tf.fill([size], tf.constant(value, tf.int64))


def _key(seed: int | None) -> int:
    """Returns the key of a seed, an int64."""
    if seed is None:
        seed = seeds.draw_number()
    sequence = np.random.SeedSequence([_SALT, seed % 2**64])
    return int(sequence.generate_state(1, np.uint64).astype(np.int64)[0])
