"""Pendulum: swing a pendulum up and hold it there, with a limited torque.

Gymnasium's Pendulum-v1: semi-implicit Euler steps of an undamped rod.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import tensorflow as tf

from tfrl.environments.native.dynamics import Dynamics, GymnasiumRenderer, Outcome
from tfrl.specs.tensor_spec import BoundedTensorSpec

_MAX_SPEED = 8.0
_MAX_TORQUE = 2.0
_SECONDS = 0.05
_GRAVITY = 10.0
_HIGH = np.array([1, 1, _MAX_SPEED], np.float32)
_START = np.array([math.pi, 1], np.float32)


def dynamics(max_episode_steps: int | None = 200) -> Dynamics:
    """Returns the dynamics; Gymnasium's limit is 200, and nothing else ends an episode.

    The state is float32 `[B, 2]`: the angle from upright, and the speed. In Gymnasium
    the angle grows with every turn; here each step first wraps it to [-pi, pi], so that
    float32 keeps its precision. The observation, `[B, 3]`, is the angle's cosine and
    sine, and the speed.
    """
    return Dynamics(
        initial=_initial,
        step=_step,
        observe=_observe,
        observation_spec=BoundedTensorSpec(
            [3], tf.float32, -_HIGH, _HIGH, name="observation"
        ),
        action_spec=BoundedTensorSpec(
            [1], tf.float32, -_MAX_TORQUE, _MAX_TORQUE, name="action"
        ),
        num_initial_randoms=2,
        max_episode_steps=max_episode_steps,
        render=GymnasiumRenderer("Pendulum-v1"),
    )


def _initial(random: tf.Tensor) -> tf.Tensor:
    return random * (2 * _START) - _START


def _observe(state: tf.Tensor) -> tf.Tensor:
    angle, speed = tf.unstack(state, axis=1)
    return tf.stack([tf.cos(angle), tf.sin(angle), speed], axis=1)


def _step(state: tf.Tensor, action: tf.Tensor, random: Any) -> Outcome:
    del random
    angle, speed = tf.unstack(state, axis=1)
    angle -= 2 * math.pi * tf.round(angle / (2 * math.pi))
    torque = tf.clip_by_value(tf.squeeze(action, axis=1), -_MAX_TORQUE, _MAX_TORQUE)
    cost = angle * angle + 0.1 * speed * speed + 0.001 * torque * torque
    speed += (_GRAVITY * 1.5 * _SECONDS) * tf.sin(angle) + (3 * _SECONDS) * torque
    speed = tf.clip_by_value(speed, -_MAX_SPEED, _MAX_SPEED)
    return Outcome(
        state=tf.stack([angle + _SECONDS * speed, speed], axis=1),
        reward=-cost,
        terminated=tf.zeros_like(speed, tf.bool),
    )
