"""Adds random masks of allowed arms to a bandit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow as tf

from tfrl.bandits.environments import bandit_tf_environment
from tfrl.environments import tf_environment
from tfrl.policies import utils as policy_utils
from tfrl.trajectories import time_step as ts
from tfrl.utils.random_numbers import seeds


class BernoulliActionMaskTFEnvironment(bandit_tf_environment.BanditTFEnvironment):
    """Allows each arm with a probability, and at least one arm of each member."""

    def __init__(
        self,
        original_environment: tf_environment.TFEnvironment,
        action_constraint_join_fn: Callable[[Any, Any], Any],
        action_probability: float,
        *,
        seed: int | None = None,
    ) -> None:
        """Wraps a bandit.

        Args:
          original_environment: The bandit, a `BanditTFEnvironment` or another with
            `is_bandit`, such as a problem of `rounds.dynamics`.
          action_constraint_join_fn: Makes an observation of the bandit's and of a mask,
            int32 `[B, A]`; also of specs. A splitter undoes it.
          action_probability: The probability that an arm is allowed.
          seed: The seed of the masks; see `BanditTFEnvironment`.

        Raises:
          ValueError: The environment is no bandit.
        """
        if not original_environment.is_bandit:
            raise ValueError(
                f"original_environment: got a {type(original_environment).__name__} "
                "without rounds, expected a bandit; see tfrl.bandits.environments."
            )
        self._original = original_environment
        self._join = action_constraint_join_fn
        self._probability = action_probability
        specs = original_environment.time_step_spec()
        action_spec = original_environment.action_spec()
        number = policy_utils.get_num_actions_from_tensor_spec(action_spec)
        size = original_environment.batch_size
        observation = self._join(specs.observation, tf.TensorSpec([number], tf.int32))
        super().__init__(
            ts.time_step_spec(observation, specs.reward), action_spec, size, seed=seed
        )
        self._mask = tf.Variable(tf.ones([size, number], tf.int32), trainable=False)

    @property
    def original_environment(self) -> tf_environment.TFEnvironment:
        """The bandit without masks."""
        return self._original

    def _reset(self) -> ts.TimeStep:
        self._original.reset()
        return super()._reset()

    def _observe(self) -> Any:
        observation = self._original.current_time_step().observation
        for_mask, for_one = seeds.split_seed(self._next_seed(), 2)
        shape = self._mask.shape
        mask = seeds.uniform(for_mask, shape) < self._probability
        one = tf.one_hot(
            policy_utils.random_valid_index(tf.ones(shape), for_one),
            shape[1],
            on_value=True,
            off_value=False,
        )
        mask |= one & ~tf.reduce_any(mask, axis=1, keepdims=True)
        self._mask.assign(tf.cast(mask, tf.int32))
        return self._join(observation, self._mask.read_value())

    def _apply_action(self, action: Any) -> Any:
        is_allowed = tf.gather(self._mask, action, batch_dims=1)
        check = tf.debugging.assert_equal(
            is_allowed, 1, message="Action not in allowed action set."
        )
        with tf.control_dependencies([] if check is None else [check]):
            return self._original.step(tf.identity(action)).reward
