"""CartPole: push a cart left or right so that the pole on it does not fall.

The system of Barto, Sutton and Anderson (1983), with Gymnasium's constants and its
explicit Euler steps.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import tensorflow as tf

from tfrl.environments.native.dynamics import Dynamics, GymnasiumRenderer, Outcome
from tfrl.specs.tensor_spec import BoundedTensorSpec

_GRAVITY = 9.8
_POLE_MASS = 0.1
_TOTAL_MASS = 1.1
_HALF_LENGTH = 0.5
_FORCE = 10.0
_SECONDS = 0.02
_MAX_POSITION = 2.4
_MAX_ANGLE = 12 * 2 * math.pi / 360
_LIMITS = np.array([_MAX_POSITION, np.inf, _MAX_ANGLE, np.inf], np.float32)
_HIGH = np.array([2 * _MAX_POSITION, np.inf, 2 * _MAX_ANGLE, np.inf], np.float32)


def dynamics(max_episode_steps: int | None = 500) -> Dynamics:
    """Returns the dynamics; Gymnasium's limit is 200 for v0 and 500 for v1.

    The state is the observation, float32 `[B, 4]`: position, velocity, angle, angular
    velocity. Action 1 pushes right, and any other action pushes left. The reward is 1
    at every step.
    """
    return Dynamics(
        initial=_initial,
        step=_step,
        observation_spec=BoundedTensorSpec(
            [4], tf.float32, -_HIGH, _HIGH, name="observation"
        ),
        action_spec=BoundedTensorSpec([], tf.int64, 0, 1, name="action"),
        num_initial_randoms=4,
        max_episode_steps=max_episode_steps,
        render=GymnasiumRenderer("CartPole-v1"),
    )


def _initial(random: tf.Tensor) -> tf.Tensor:
    return random * 0.1 - 0.05


def _step(state: tf.Tensor, action: tf.Tensor, random: Any) -> Outcome:
    del random
    _, velocity, angle, spin = tf.unstack(state, axis=1)
    cosine, sine = tf.cos(angle), tf.sin(angle)
    # Divided by the total mass; Python folds the constants in float64.
    push = tf.where(tf.equal(action, 1), _FORCE / _TOTAL_MASS, -_FORCE / _TOTAL_MASS)
    pole = _POLE_MASS * _HALF_LENGTH / _TOTAL_MASS
    pole_cosine = pole * cosine
    common = push + pole * spin * spin * sine
    angular = (_GRAVITY * sine - cosine * common) / (
        _HALF_LENGTH * 4 / 3 - pole_cosine * cosine
    )
    linear = common - pole_cosine * angular
    # One packed sum and one packed comparison take the fewest operations, both in a
    # graph and in the compiled program.
    state += _SECONDS * tf.stack([velocity, linear, spin, angular], axis=1)
    return Outcome(
        state=state,
        reward=tf.ones_like(velocity),
        terminated=tf.reduce_any(tf.abs(state) > _LIMITS, axis=1),
    )
