"""Acrobot: swing the free end of two links above a line by turning the middle joint.

Sutton (1996), with the equations of his book, as in Gymnasium: one fourth-order
Runge-Kutta step of 0.2 seconds.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import tensorflow as tf

from tfrl.environments.native.dynamics import Dynamics, GymnasiumRenderer, Outcome
from tfrl.specs.tensor_spec import BoundedTensorSpec

_SECONDS = 0.2
_GRAVITY = 9.8
_MAX_SPIN_1, _MAX_SPIN_2 = 4 * math.pi, 9 * math.pi
_HIGH = np.array([1, 1, 1, 1, _MAX_SPIN_1, _MAX_SPIN_2], np.float32)


def dynamics(max_episode_steps: int | None = 500) -> Dynamics:
    """Returns the dynamics; Gymnasium's limit is 500.

    The state is float32 `[B, 4]`: the angle of the first link from hanging, the angle
    of the second link relative to the first, and their speeds. The observation, `[B,
    6]`, is the cosine and sine of each angle, and the speeds. Actions 0, 1 and 2 are
    torques of -1, 0 and 1. The reward is -1 at every step, and 0 at the step that
    reaches the line.

    While both speeds are below half of their maxima, the result of a step differs from
    Gymnasium's float64 result by at most 1e-5. At higher speeds a link turns by radians
    within a step, and the Runge-Kutta step magnifies rounding errors: among random
    states of all speeds, 1 in 30 differs by more than 1e-5.
    """
    return Dynamics(
        initial=_initial,
        step=_step,
        observe=_observe,
        observation_spec=BoundedTensorSpec(
            [6], tf.float32, -_HIGH, _HIGH, name="observation"
        ),
        action_spec=BoundedTensorSpec([], tf.int64, 0, 2, name="action"),
        num_initial_randoms=4,
        max_episode_steps=max_episode_steps,
        render=GymnasiumRenderer("Acrobot-v1"),
    )


def _initial(random: tf.Tensor) -> tf.Tensor:
    return random * 0.2 - 0.1


def _observe(state: tf.Tensor) -> tf.Tensor:
    angle_1, angle_2, spin_1, spin_2 = tf.unstack(state, axis=1)
    return tf.stack(
        [
            tf.cos(angle_1),
            tf.sin(angle_1),
            tf.cos(angle_2),
            tf.sin(angle_2),
            spin_1,
            spin_2,
        ],
        axis=1,
    )


def _step(state: tf.Tensor, action: tf.Tensor, random: Any) -> Outcome:
    del random
    torque = tf.cast(action, tf.float32) - 1
    angle_1, angle_2, spin_1, spin_2 = _integrate(tf.unstack(state, axis=1), torque)
    angle_1, angle_2 = _wrap(angle_1), _wrap(angle_2)
    terminated = -tf.cos(angle_1) - tf.cos(angle_1 + angle_2) > 1
    state = [
        angle_1,
        angle_2,
        tf.clip_by_value(spin_1, -_MAX_SPIN_1, _MAX_SPIN_1),
        tf.clip_by_value(spin_2, -_MAX_SPIN_2, _MAX_SPIN_2),
    ]
    return Outcome(
        state=tf.stack(state, axis=1),
        reward=tf.where(terminated, 0.0, -1.0),
        terminated=terminated,
    )


def _integrate(state: list[tf.Tensor], torque: tf.Tensor) -> list[tf.Tensor]:
    """Makes one Runge-Kutta step of the two angles and the two spins, all `[B]`.

    The slopes of the angles are the spins, so only the accelerations are computed at
    the four points.
    """
    angles, spins, dt = state[:2], state[2:], _SECONDS

    def forward(start: list[Any], step: float, slopes: Any) -> list[Any]:
        return [x + step * slope for x, slope in zip(start, slopes, strict=True)]

    a = _accelerations(angles, spins, torque)
    spins_b = forward(spins, dt / 2, a)
    b = _accelerations(forward(angles, dt / 2, spins), spins_b, torque)
    spins_c = forward(spins, dt / 2, b)
    c = _accelerations(forward(angles, dt / 2, spins_b), spins_c, torque)
    spins_d = forward(spins, dt, c)
    d = _accelerations(forward(angles, dt, spins_c), spins_d, torque)
    middle = [b[i] + c[i] for i in range(2)]
    mean_spins = [spins[i] + dt / 6 * (a[i] + middle[i]) for i in range(2)]
    accelerations = [a[i] + 2 * middle[i] + d[i] for i in range(2)]
    return [*forward(angles, dt, mean_spins), *forward(spins, dt / 6, accelerations)]


def _accelerations(
    angles: list[tf.Tensor], spins: list[tf.Tensor], torque: tf.Tensor
) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns both accelerations, by the book's equations with all constants 1."""
    (angle_1, angle_2), (spin_1, spin_2) = angles, spins
    cosine, half_sine = tf.cos(angle_2), 0.5 * tf.sin(angle_2)
    d1 = cosine + 3.5
    d2 = 0.5 * cosine + 1.25
    phi2 = (0.5 * _GRAVITY) * tf.sin(angle_1 + angle_2)
    phi1 = (
        (1.5 * _GRAVITY) * tf.sin(angle_1)
        + phi2
        - half_sine * spin_2 * (spin_2 + 2 * spin_1)
    )
    ratio = d2 / d1
    second = (torque + ratio * phi1 - half_sine * spin_1 * spin_1 - phi2) / (
        1.25 - ratio * d2
    )
    first = -(ratio * second + phi1 / d1)
    return first, second


def _wrap(angle: tf.Tensor) -> tf.Tensor:
    return angle - 2 * math.pi * tf.round(angle / (2 * math.pi))
