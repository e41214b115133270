"""One-step temporal differences.

Every function returns the TD error `target - prediction`, elementwise; a loss is a
function of it, such as `huber_loss`. Gradients flow into the prediction alone.
"""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from tfrl.losses.shapes import check_ranks, check_same_shape


def td_target(r_t: Any, discount_t: Any, v_t: Any) -> tf.Tensor:
    """`r_t + discount_t v_t`, without gradient.

    Sutton and Barto, "Reinforcement Learning: An Introduction", 2018, equation 6.2.

    Args:
      r_t: rewards, `[B]` or `[T, B]`.
      discount_t: discounts like `r_t`, 0 where the next state is terminal.
      v_t: values of the next states, like `r_t`.
    """
    r_t, discount_t, v_t = map(tf.convert_to_tensor, (r_t, discount_t, v_t))
    check_ranks((1, 2), r_t=r_t, discount_t=discount_t, v_t=v_t)
    check_same_shape(r_t=r_t, discount_t=discount_t, v_t=v_t)
    return tf.stop_gradient(r_t + discount_t * v_t)


def td_error(v_tm1: Any, r_t: Any, discount_t: Any, v_t: Any) -> tf.Tensor:
    """`r_t + discount_t v_t - v_tm1`: TD(0), Sutton and Barto 2018, equation 6.5.

    Args:
      v_tm1: predicted values, `[B]` or `[T, B]`.
      r_t: rewards, like `v_tm1`.
      discount_t: discounts, like `v_tm1`.
      v_t: values of the next states, like `v_tm1`; no gradient flows into them.
    """
    v_tm1, target = tf.convert_to_tensor(v_tm1), td_target(r_t, discount_t, v_t)
    check_same_shape(r_t=target, v_tm1=v_tm1)
    return target - v_tm1


def q_learning(
    q_tm1: Any, a_tm1: Any, r_t: Any, discount_t: Any, q_t: Any
) -> tf.Tensor:
    """`r_t + discount_t max_a q_t(a) - q_tm1(a_tm1)`.

    Watkins and Dayan, "Q-learning", 1992; Sutton and Barto 2018, equation 6.8.

    Args:
      q_tm1: predicted action values, `[B, A]` or `[T, B, A]`.
      a_tm1: actions taken, 0-based integers `[B]` or `[T, B]`.
      r_t: rewards, like `a_tm1`.
      discount_t: discounts, like `a_tm1`.
      q_t: action values of the next states (the target network's), like `q_tm1`.
    """
    q_t = tf.convert_to_tensor(q_t)
    check_ranks((2, 3), q_t=q_t)
    return td_error(_taken(q_tm1, a_tm1), r_t, discount_t, tf.reduce_max(q_t, axis=-1))


def double_q_learning(
    q_tm1: Any,
    a_tm1: Any,
    r_t: Any,
    discount_t: Any,
    q_t_value: Any,
    q_t_selector: Any,
) -> tf.Tensor:
    """`r_t + discount_t q_t_value(argmax_a q_t_selector(a)) - q_tm1(a_tm1)`.

    Van Hasselt, Guez and Silver, "Deep Reinforcement Learning with Double Q-learning",
    2016, equation 4.

    Args:
      q_tm1: predicted action values, `[B, A]` or `[T, B, A]`.
      a_tm1: actions taken, 0-based integers `[B]` or `[T, B]`.
      r_t: rewards, like `a_tm1`.
      discount_t: discounts, like `a_tm1`.
      q_t_value: action values of the next states, which value the action (the target
        network's), like `q_tm1`.
      q_t_selector: action values of the next states, which choose it (the online
        network's), like `q_tm1`.
    """
    best = tf.argmax(q_t_selector, axis=-1, output_type=tf.int32)
    return td_error(_taken(q_tm1, a_tm1), r_t, discount_t, _taken(q_t_value, best))


def _taken(q: Any, a: Any) -> tf.Tensor:
    """The values `[..., A]` of the actions `[...]`."""
    q, a = tf.convert_to_tensor(q), tf.convert_to_tensor(a)
    check_ranks((2, 3), action_values=q)
    check_same_shape(action_values_without_actions=q[..., 0], actions=a)
    return tf.gather(q, a, axis=-1, batch_dims=a.shape.rank)
