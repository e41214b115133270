"""`ClassificationBanditEnvironment`, a data set of classes as a bandit."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from tfrl.bandits.environments import bandit_tf_environment
from tfrl.specs import tensor_spec
from tfrl.trajectories import time_step as ts


class ClassificationBanditEnvironment(bandit_tf_environment.BanditTFEnvironment):
    """Contexts are the inputs of a `tf.data` set; rewards depend on their classes.

    The data set's place cannot be saved, and loops that XLA compiles cannot contain
    it. `problems.classification` is the same for arrays, without these limits.
    """

    def __init__(
        self,
        dataset: tf.data.Dataset,
        reward_distribution: Any,
        batch_size: int,
        label_dtype_cast: tf.DType | None = None,
        shuffle_buffer_size: int | None = None,
        repeat_dataset: bool = True,
        prefetch_size: int | None = None,
        seed: int | None = None,
        name: str | None = "classification",
    ) -> None:
        """Makes the environment.

        Args:
          dataset: Pairs of an input of any shape and an integer label.
          reward_distribution: A distribution with event shape `[classes, A]`, of the
            reward of each arm for each class.
          batch_size: The number of members.
          label_dtype_cast: The integer dtype to keep labels in; None for the data's.
          shuffle_buffer_size: The size of a buffer that shuffles; None for none.
          repeat_dataset: Whether to begin again after the last row.
          prefetch_size: The number of batches to read ahead; None for none.
          seed: The seed of shuffling and of rewards.
          name: The module's name.

        Raises:
          ValueError: A shape is another one.
        """
        shape = reward_distribution.event_shape
        if len(shape) != 2:
            raise ValueError(
                f"reward_distribution: got event shape of rank {len(shape)}, {shape}, "
                "expected [classes, actions]; tfp.distributions.Independent makes it."
            )
        spec = dataset.element_spec
        if not isinstance(spec, tuple) or len(spec) != 2:
            raise ValueError(
                f"dataset: got elements {spec}, expected pairs of an input and a "
                "label; map it to pairs."
            )
        context_spec, label_spec = spec
        super().__init__(
            ts.time_step_spec(tf.TensorSpec(context_spec.shape, context_spec.dtype)),
            tensor_spec.BoundedTensorSpec(
                [], tf.int32, 0, int(shape[1]) - 1, name="action"
            ),
            batch_size,
            name,
            seed=seed,
        )
        if shuffle_buffer_size:
            dataset = dataset.shuffle(
                buffer_size=shuffle_buffer_size,
                seed=seed,
                reshuffle_each_iteration=True,
            )
        if repeat_dataset:
            dataset = dataset.repeat()
        dataset = dataset.batch(batch_size, drop_remainder=True)
        if prefetch_size:
            dataset = dataset.prefetch(prefetch_size)
        self._iterator = iter(dataset)
        zeros = tf.zeros([batch_size], label_dtype_cast or label_spec.dtype)
        self._current_label = tf.Variable(zeros, trainable=False)
        self._previous_label = tf.Variable(zeros, trainable=False)
        self._reward_distribution = reward_distribution
        self._means = tf.convert_to_tensor(reward_distribution.mean())

    def get_state(self) -> Any:
        """Raises a NotImplementedError: the data set's place cannot be saved."""
        raise NotImplementedError(
            "ClassificationBanditEnvironment.get_state: the place in a tf.data set "
            "cannot be saved; use problems.classification with arrays."
        )

    def compute_optimal_action(self) -> tf.Tensor:
        """Returns the best arms of the last round, int32 `[B]`."""
        best = tf.argmax(self._means, axis=1, output_type=tf.int32)
        return tf.gather(best, self._previous_label)

    def compute_optimal_reward(self) -> tf.Tensor:
        """Returns the expected rewards of the best arms of the last round, `[B]`."""
        return tf.gather(tf.reduce_max(self._means, axis=1), self._previous_label)

    def _observe(self) -> tf.Tensor:
        context, label = next(self._iterator)
        self._previous_label.assign(self._current_label)
        self._current_label.assign(
            tf.reshape(tf.cast(label, self._current_label.dtype), [self.batch_size])
        )
        return context

    def _apply_action(self, action: Any) -> tf.Tensor:
        # TFP takes stateless seeds as int32.
        seed = tf.cast(self._next_seed(), tf.int32)
        rewards = self._reward_distribution.sample([self.batch_size], seed=seed)
        rewards = tf.gather(rewards, self._current_label, batch_dims=1)
        action = tf.reshape(action, [self.batch_size])
        return tf.gather(rewards, action, batch_dims=1)
