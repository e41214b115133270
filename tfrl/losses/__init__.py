"""The mathematics of the algorithms: pure functions on tensors.

Names contain the time step, as in rlax: `v_tm1` is the value of the state at time `t -
1`, `r_t` and `discount_t` are received on the way to the state at time `t`, and `v_t`
is the value of the state at time `t`. The discount of each step is an input (gamma
times the environment's discount), and is 0 at a termination. Shapes are `[B]` or,
time-major, `[T, B]`. Only `aggregate_losses` reduces over the batch. `discounting` has
TF-Agents' helpers for rows `[B, T]`.

>>> import tensorflow as tf
>>> from tfrl import losses
>>> rewards = tf.constant([1.0, 1.0, 1.0])[:, None]  # [T, B]
>>> discounts = 0.5 * tf.constant([1.0, 1.0, 0.0])[:, None]  # the last terminates
>>> losses.discounted_returns(rewards, discounts)[:, 0].numpy().tolist()
[1.75, 1.5, 1.0]
>>> values = tf.constant([2.0, 4.0])
>>> target = losses.td_target(tf.ones([2]), tf.constant([0.75, 0.0]), values)
>>> losses.huber_loss(target).numpy().tolist()
[2.0, 0.5]
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
