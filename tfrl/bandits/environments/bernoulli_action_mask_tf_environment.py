"""`BernoulliActionMaskTFEnvironment`, which forbids random arms in each round."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow as tf

from tfrl.bandits.environments import bandit_tf_environment
from tfrl.compilation import context
from tfrl.environments import tf_environment
from tfrl.policies import utils as policy_utils
from tfrl.trajectories import time_step as ts
from tfrl.utils import number_checks
from tfrl.utils.random_numbers import seeds


class BernoulliActionMaskTFEnvironment(bandit_tf_environment.BanditTFEnvironment):
    """Allows each arm of a bandit with a probability, and at least one arm.

    The action of a forbidden arm is an error, except in a program that XLA compiles.
    """

    def __init__(
        self,
        original_environment: tf_environment.TFEnvironment,
        action_constraint_join_fn: Callable[[Any, Any], Any],
        action_probability: float,
        *,
        seed: int | None = None,
    ) -> None:
        """Makes the environment.

        Args:
          original_environment: A bandit in TensorFlow with one discrete action. Give
            it its own seed.
          action_constraint_join_fn: Joins an observation and a mask, int32 `[B, A]`,
            and also their specs, to what the agent sees.
          action_probability: The probability that an arm is allowed. In a row where no
            arm is, one is, uniformly.
          seed: The seed of the masks.

        Raises:
          ValueError: The environment is no bandit, or the number no probability.
        """
        if not original_environment.is_bandit:
            raise ValueError(
                f"original_environment: got a {type(original_environment).__name__}, "
                "which is no bandit, expected one whose steps are whole rounds."
            )
        number_checks.check_number(
            "action_probability", action_probability, 0, 1, remedy="0.5 is usual"
        )
        self._original_environment = original_environment
        self._join = action_constraint_join_fn
        self._probability = action_probability
        spec, action_spec = (
            original_environment.time_step_spec(),
            original_environment.action_spec(),
        )
        number = policy_utils.get_num_actions_from_tensor_spec(action_spec)
        size = int(original_environment.batch_size)
        mask_spec = tf.TensorSpec([number], tf.int32)
        super().__init__(
            ts.time_step_spec(self._join(spec.observation, mask_spec), spec.reward),
            action_spec,
            size,
            seed=seed,
        )
        self._mask = tf.Variable(
            tf.ones([size, number], tf.int32), trainable=False, name="mask"
        )

    @property
    def original_environment(self) -> tf_environment.TFEnvironment:
        """The environment without masks."""
        return self._original_environment

    def _reset(self) -> ts.TimeStep:
        self._original_environment.reset()
        return super()._reset()

    def _observe(self) -> Any:
        observation = self._original_environment.current_time_step().observation
        for_mask, for_one = seeds.split_seed(self._next_seed(), 2)
        shape = self._mask.shape
        mask = tf.cast(seeds.uniform(for_mask, shape) < self._probability, tf.int32)
        one = seeds.uniform(for_one, shape[:1], 0, shape[1], tf.int32)
        is_empty = tf.reduce_sum(mask, axis=1, keepdims=True) == 0
        mask = tf.where(is_empty, tf.one_hot(one, shape[1], dtype=tf.int32), mask)
        self._mask.assign(mask)
        return self._join(observation, mask)

    def _apply_action(self, action: Any) -> Any:
        allowed = tf.gather(self._mask, tf.cast(action, tf.int32), batch_dims=1)
        check = context.assert_true(
            tf.reduce_all(allowed == 1),
            [
                "action: got an arm that is not in allowed ones of the mask, which are",
                self._mask.read_value(),
                "; choose one of these.",
            ],
        )
        with tf.control_dependencies([] if check is None else [check]):
            return self._original_environment.step(action).reward
