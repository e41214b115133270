"""Functions that make values smaller, their inverses, and R2D2's errors of such values.

R2D2's function is `h(x) = sign(x) (sqrt(|x| + 1) - 1) + eps x`, so that one network can
learn returns of any size without clipping rewards. Pohlen et al., "Observe and look
further: achieving consistent performance on Atari" (2018, arXiv:1805.11593);
Kapturowski et al., "Recurrent experience replay in distributed reinforcement learning"
(2019, R2D2). Another such function is `sign(x) log(1 + |x|)`, Hafner et al., "Mastering
diverse domains through world models" (2023, arXiv:2301.04104).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import tensorflow as tf

from tfrl.losses.returns import n_step_returns
from tfrl.losses.shapes import check_ranks, check_same_shape, check_scalars
from tfrl.losses.td import action_value

if TYPE_CHECKING:
    from tfrl.typing import types


def signed_hyperbolic(x: types.TensorLike, eps: float = 1e-3) -> tf.Tensor:
    """Returns `h(x) = sign(x) (sqrt(|x| + 1) - 1) + eps x`, in the shape of `x`.

    Pohlen et al. 2018, proposition A.2.

    Args:
      x: Floats of any shape.
      eps: The factor of the linear term, a number or a scalar.

    Raises:
      ValueError: `eps` is not a scalar.
    """
    check_scalars(eps=eps)
    x = tf.convert_to_tensor(x)
    sign = _sign(x)
    size = sign * x
    # This is sqrt(1 + x) - 1 without the difference of two nearly equal numbers.
    root = size / (tf.sqrt(size + 1) + 1)
    return sign * root + eps * x


def signed_parabolic(x: types.TensorLike, eps: float = 1e-3) -> tf.Tensor:
    """Returns the inverse of `signed_hyperbolic`, in the shape of `x`.

    Pohlen et al. 2018, proposition A.2.

    Args:
      x: Floats of any shape.
      eps: The factor of the linear term, a number or a scalar.

    Raises:
      ValueError: `eps` is not a scalar.
    """
    check_scalars(eps=eps)
    x = tf.convert_to_tensor(x)
    sign = _sign(x)
    size = sign * x
    # With z = sqrt(1 + |inverse|), eps z^2 + z - (1 + eps + |x|) = 0. The positive
    # solution minus 1, again without a difference.
    root = tf.sqrt(1 + 4 * eps * (eps + 1 + size))
    above = 2 * size / (root + 1 + 2 * eps)
    return sign * above * (above + 2)


def signed_logp1(x: types.TensorLike) -> tf.Tensor:
    """Returns `sign(x) log(1 + |x|)`, in the shape of `x`.

    Hafner et al. 2023, the function symlog.
    """
    x = tf.convert_to_tensor(x)
    sign = _sign(x)
    return sign * tf.math.log1p(sign * x)


def signed_expm1(x: types.TensorLike) -> tf.Tensor:
    """Returns `sign(x) (exp(|x|) - 1)`, the inverse of `signed_logp1`.

    Hafner et al. 2023, the function symexp.
    """
    x = tf.convert_to_tensor(x)
    sign = _sign(x)
    return sign * tf.math.expm1(sign * x)


def _sign(x: tf.Tensor) -> tf.Tensor:
    """Returns the signs of numbers, 1 for 0.

    With `tf.sign` and `tf.abs`, whose values and gradients at 0 are 0, the functions of
    this module would have no slope there.
    """
    one = tf.constant(1, x.dtype)
    return tf.where(x < 0, -one, one)


class LossCoreExtra(NamedTuple):
    """What `transformed_n_step_loss` returns beside the loss, as Acme's.

    Attributes:
      targets: The rescaled returns `h(G_t)`, without a gradient, `[T, B]`.
      errors: The errors `q_t(a_t) - h(G_t)`, `[T, B]`.
    """

    targets: tf.Tensor
    errors: tf.Tensor


def transformed_n_step_loss(
    qs: types.TensorLike,
    targnet_qs: types.TensorLike,
    actions: types.TensorLike,
    rewards: types.TensorLike,
    pcontinues: types.TensorLike,
    target_policy_probs: types.TensorLike,
    bootstrap_n: int,
) -> tuple[tf.Tensor, LossCoreExtra]:
    """Returns R2D2's loss of sequences, with the arguments of Acme.

    Kapturowski et al. 2019, section 2.3: `1/2 sum_t (q_t(a_t) - h(G_t))^2`, where `G_t`
    bootstraps with the mean of `h^-1` of the target network's values under the target
    policy.

    Args:
      qs: The predicted action values, `[T + 1, B, A]`.
      targnet_qs: The action values of the target network, `[T + 1, B, A]`; no gradient
        flows into them.
      actions: The actions, 0-based integers `[T + 1, B]`; the last actions do not
        count.
      rewards: Rewards, `[T, B]`.
      pcontinues: Discounts, `[T, B]`.
      target_policy_probs: The target policy's probabilities of the actions,
        `[T + 1, B, A]`: one-hot at the greatest value for double Q-learning.
      bootstrap_n: The number of steps in a return; fewer at the end of a sequence.

    Returns:
      The losses `[B]`, and a `LossCoreExtra` of the targets and the errors.

    Raises:
      ValueError: The shapes differ.
    """
    qs, targnet_qs = tf.convert_to_tensor(qs), tf.convert_to_tensor(targnet_qs)
    probabilities = tf.convert_to_tensor(target_policy_probs)
    check_ranks((3,), qs=qs)
    check_same_shape(qs=qs, targnet_qs=targnet_qs, target_policy_probs=probabilities)
    check_same_shape(one_action_of_qs=qs.shape[:-1], actions=actions)
    v_t = tf.reduce_sum(probabilities[1:] * signed_parabolic(targnet_qs[1:]), axis=-1)
    check_same_shape(all_but_one_of_qs=v_t, rewards=rewards, pcontinues=pcontinues)
    returns = n_step_returns(rewards, pcontinues, v_t, bootstrap_n)
    predictions = action_value(qs[:-1], tf.convert_to_tensor(actions)[:-1])
    targets = tf.stop_gradient(signed_hyperbolic(returns))
    errors = predictions - targets
    loss = 0.5 * tf.reduce_sum(tf.square(errors), axis=0)
    return loss, LossCoreExtra(targets, errors)
