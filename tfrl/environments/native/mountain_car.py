"""MountainCar: rock an underpowered car up a hill, with three discrete actions.

Moore's problem (1990), as in Gymnasium.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf

from tfrl.environments.native import rendering
from tfrl.environments.native.dynamics import Dynamics, Outcome
from tfrl.specs.tensor_spec import BoundedTensorSpec

MIN_POSITION, MAX_POSITION = -1.2, 0.6
MAX_SPEED = 0.07
GRAVITY = 0.0025
_FORCE = 0.001
_GOAL = 0.5


def dynamics(max_episode_steps: int | None = 200) -> Dynamics:
    """Returns the dynamics; Gymnasium's limit is 200.

    The state is the observation, float32 `[B, 2]`: position and velocity. Actions 0, 1
    and 2 push left, not at all and right. The reward is -1 at every step.
    """
    return Dynamics(
        initial=initial,
        step=_step,
        observation_spec=observation_spec(),
        action_spec=BoundedTensorSpec([], tf.int64, 0, 2, name="action"),
        num_initial_randoms=1,
        max_episode_steps=max_episode_steps,
        render=rendering.GymnasiumRenderer("MountainCar-v0"),
    )


def observation_spec() -> BoundedTensorSpec:
    """The spec of position and velocity, with their bounds."""
    return BoundedTensorSpec(
        [2],
        tf.float32,
        np.array([MIN_POSITION, -MAX_SPEED], np.float32),
        np.array([MAX_POSITION, MAX_SPEED], np.float32),
        name="observation",
    )


def initial(random: tf.Tensor) -> tf.Tensor:
    """Returns states at rest in the valley, `[B, 2]`, for random numbers `[B, 1]`."""
    return random * np.array([0.2, 0], np.float32) + np.array([-0.6, 0], np.float32)


def roll(
    position: tf.Tensor, velocity: tf.Tensor, push: tf.Tensor
) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns position and velocity after a step with the acceleration `push`, `[B]`.

    The left wall stops the car.
    """
    velocity = velocity + (push - GRAVITY * tf.cos(3 * position))
    velocity = tf.clip_by_value(velocity, -MAX_SPEED, MAX_SPEED)
    position = tf.clip_by_value(position + velocity, MIN_POSITION, MAX_POSITION)
    stopped = tf.logical_and(position <= MIN_POSITION, velocity < 0)
    return position, tf.where(stopped, 0.0, velocity)


def _step(state: tf.Tensor, action: tf.Tensor, random: Any) -> Outcome:
    del random
    position, velocity = tf.unstack(state, axis=1)
    push = _FORCE * (tf.cast(action, tf.float32) - 1)
    position, velocity = roll(position, velocity, push)
    return Outcome(
        state=tf.stack([position, velocity], axis=1),
        reward=-tf.ones_like(position),
        terminated=tf.logical_and(position >= _GOAL, velocity >= 0),
    )
