"""The loss of a model that predicts embeddings, rewards and ends of episodes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import tensorflow as tf

from tfrl.losses.shapes import check_same_shape

if TYPE_CHECKING:
    from tfrl.losses.two_hot import TwoHot
    from tfrl.typing import types


def latent_rollout_losses(
    predictions: tuple[types.TensorLike, types.TensorLike, types.TensorLike],
    targets: tuple[types.TensorLike, types.TensorLike, types.TensorLike],
    reward_loss: TwoHot,
) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
    """Returns the losses of the predicted states, rewards and terminations.

    Fujimoto et al., "Towards general-purpose model-free reinforcement learning" (2025,
    arXiv:2501.16142), equations 11 to 13: the mean squared error of an embedding, the
    cross entropy of a reward in bins, and the squared error of a termination.

    Args:
      predictions: The predicted embeddings `[..., n]`, the logits of the rewards'
        bins `[..., K]`, and the predicted terminations `[...]`.
      targets: The embeddings of the states reached, `[..., n]`, the rewards and the
        terminations (1 or 0), `[...]`. They get no gradient.
      reward_loss: The loss of rewards.

    Returns:
      The three losses, each `[...]`.

    Raises:
      ValueError: The shapes differ.
    """
    states, reward_logits, ends = map(tf.convert_to_tensor, predictions)
    true_states, rewards, true_ends = map(tf.stop_gradient, targets)
    check_same_shape(predicted_states=states, states=true_states)
    check_same_shape(predicted_ends=ends, ends=true_ends)
    distance = tf.math.squared_difference(states, true_states)
    return (
        tf.reduce_mean(distance, axis=-1),
        reward_loss(rewards, reward_logits),
        tf.math.squared_difference(ends, true_ends),
    )
