"""MountainCar: rock an underpowered car up a hill, by three actions or by a force.

Moore's problem (1990), as in Gymnasium.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf

from tfrl.environments.native.dynamics import Dynamics, GymnasiumRenderer, Outcome
from tfrl.specs.tensor_spec import BoundedTensorSpec

_MIN_POSITION, _MAX_POSITION = -1.2, 0.6
_MAX_SPEED = 0.07
_GRAVITY = 0.0025
_FORCE, _GOAL = 0.001, 0.5
_POWER, _CONTINUOUS_GOAL = 0.0015, 0.45


def dynamics(max_episode_steps: int | None = 200) -> Dynamics:
    """Returns the dynamics; Gymnasium's limit is 200.

    The state is the observation, float32 `[B, 2]`: position and velocity. Actions 0, 1
    and 2 push left, not at all and right. The reward is -1 at every step.
    """
    action_spec = BoundedTensorSpec([], tf.int64, 0, 2, name="action")
    return _dynamics("MountainCar-v0", _step, action_spec, max_episode_steps)


def continuous_dynamics(max_episode_steps: int | None = 999) -> Dynamics:
    """Returns the dynamics; Gymnasium's limit is 999.

    The state is the observation, float32 `[B, 2]`: position and velocity. The action,
    `[B, 1]`, is clipped to [-1, 1] for the force, but not for its cost, a tenth of its
    square; reaching the goal is rewarded with 100.
    """
    action_spec = BoundedTensorSpec([1], tf.float32, -1, 1, name="action")
    return _dynamics(
        "MountainCarContinuous-v0", _continuous_step, action_spec, max_episode_steps
    )


def _dynamics(
    name: str, step: Any, action_spec: BoundedTensorSpec, max_episode_steps: int | None
) -> Dynamics:
    """Returns the dynamics of the car, by their name in Gymnasium."""
    return Dynamics(
        initial=_initial,
        step=step,
        observation_spec=BoundedTensorSpec(
            [2],
            tf.float32,
            np.array([_MIN_POSITION, -_MAX_SPEED], np.float32),
            np.array([_MAX_POSITION, _MAX_SPEED], np.float32),
            name="observation",
        ),
        action_spec=action_spec,
        num_initial_randoms=1,
        max_episode_steps=max_episode_steps,
        render=GymnasiumRenderer(name),
    )


def _initial(random: tf.Tensor) -> tf.Tensor:
    """Returns states at rest in the valley, `[B, 2]`, for random numbers `[B, 1]`."""
    return random * np.array([0.2, 0], np.float32) + np.array([-0.6, 0], np.float32)


def _step(state: tf.Tensor, action: tf.Tensor, random: Any) -> Outcome:
    del random
    position, velocity = tf.unstack(state, axis=1)
    push = _FORCE * (tf.cast(action, tf.float32) - 1)
    position, velocity = _roll(position, velocity, push)
    return Outcome(
        state=tf.stack([position, velocity], axis=1),
        reward=-tf.ones_like(position),
        terminated=tf.logical_and(position >= _GOAL, velocity >= 0),
    )


def _continuous_step(state: tf.Tensor, action: tf.Tensor, random: Any) -> Outcome:
    del random
    position, velocity = tf.unstack(state, axis=1)
    action = tf.squeeze(action, axis=1)
    position, velocity = _roll(
        position, velocity, _POWER * tf.clip_by_value(action, -1.0, 1.0)
    )
    terminated = tf.logical_and(position >= _CONTINUOUS_GOAL, velocity >= 0)
    return Outcome(
        state=tf.stack([position, velocity], axis=1),
        reward=tf.where(terminated, 100.0, 0.0) - 0.1 * action * action,
        terminated=terminated,
    )


def _roll(
    position: tf.Tensor, velocity: tf.Tensor, push: tf.Tensor
) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns position and velocity after a step with the acceleration `push`, `[B]`.

    The left wall stops the car.
    """
    velocity = velocity + (push - _GRAVITY * tf.cos(3 * position))
    velocity = tf.clip_by_value(velocity, -_MAX_SPEED, _MAX_SPEED)
    position = tf.clip_by_value(position + velocity, _MIN_POSITION, _MAX_POSITION)
    stopped = tf.logical_and(position <= _MIN_POSITION, velocity < 0)
    return position, tf.where(stopped, 0.0, velocity)
