"""MountainCarContinuous: the car of `mountain_car`, with a force to choose."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from tfrl.environments.native import mountain_car, rendering
from tfrl.environments.native.dynamics import Dynamics, Outcome
from tfrl.specs.tensor_spec import BoundedTensorSpec

_POWER = 0.0015
_GOAL = 0.45


def dynamics(max_episode_steps: int | None = 999) -> Dynamics:
    """Returns the dynamics; Gymnasium's limit is 999.

    The state is the observation, float32 `[B, 2]`: position and velocity. The action,
    `[B, 1]`, is clipped to [-1, 1] for the force, but not for its cost, a tenth of its
    square; reaching the goal is rewarded with 100.
    """
    return Dynamics(
        initial=mountain_car.initial,
        step=_step,
        observation_spec=mountain_car.observation_spec(),
        action_spec=BoundedTensorSpec([1], tf.float32, -1, 1, name="action"),
        num_initial_randoms=1,
        max_episode_steps=max_episode_steps,
        render=rendering.GymnasiumRenderer("MountainCarContinuous-v0"),
    )


def _step(state: tf.Tensor, action: tf.Tensor, random: Any) -> Outcome:
    del random
    position, velocity = tf.unstack(state, axis=1)
    action = tf.squeeze(action, axis=1)
    position, velocity = mountain_car.roll(
        position, velocity, _POWER * tf.clip_by_value(action, -1.0, 1.0)
    )
    terminated = tf.logical_and(position >= _GOAL, velocity >= 0)
    return Outcome(
        state=tf.stack([position, velocity], axis=1),
        reward=tf.where(terminated, 100.0, 0.0) - 0.1 * action * action,
        terminated=terminated,
    )
