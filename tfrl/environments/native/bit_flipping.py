"""Bit flipping: flip one bit at a step until all bits equal the goal.

The environment of Andrychowicz et al., "Hindsight experience replay" (2017,
arXiv:1707.01495), section 3.1. The reward is the same at every step until the goal is
reached, so without hindsight agents learn nothing with more than about 13 bits.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import tensorflow as tf

from tfrl.environments.native.dynamics import Dynamics, Outcome
from tfrl.specs.tensor_spec import BoundedTensorSpec
from tfrl.utils import number_checks

_NAME = re.compile(r"BitFlipping(?P<to_ones>ToOnes)?(?P<bits>[1-9]\d*)-v0").fullmatch
_PIXELS = 16  # The width of a bit in a picture.


def dynamics(num_bits: int = 10, *, random_goals: bool = True) -> Dynamics:
    """Returns the dynamics; an episode has at most as many steps as there are bits.

    The state is float32 `[B, 2 * num_bits]`: the bits, and then the bits of the goal,
    all 0 or 1. Observations are dictionaries of float32 `[B, num_bits]`: `observation`
    and `achieved_goal` are the bits, `desired_goal` the goal. Action i flips bit i. The
    reward is -1, or 0 at the goal, where the episode terminates.

    Args:
      num_bits: The number of bits.
      random_goals: Whether each episode has a random goal, as in the paper. If not, the
        goal consists of ones, as in Stable-Baselines3's `BitFlippingEnv`.

    Raises:
      ValueError: If `num_bits` is not positive.
    """
    number_checks.check_sizes(num_bits=num_bits)
    spec = BoundedTensorSpec([num_bits], tf.float32, 0.0, 1.0)

    def initial(random: tf.Tensor) -> tf.Tensor:
        bits = tf.cast(random < 0.5, tf.float32)
        goal = bits[:, num_bits:] if random_goals else tf.ones_like(bits)
        return tf.concat([bits[:, :num_bits], goal], axis=1)

    def step(state: tf.Tensor, action: tf.Tensor, random: Any) -> Outcome:
        del random
        state = tf.abs(state - tf.one_hot(action, 2 * num_bits))
        reward = compute_reward(state[:, :num_bits], state[:, num_bits:])
        return Outcome(state, reward, terminated=reward >= 0.0)

    def observe(state: tf.Tensor) -> dict[str, tf.Tensor]:
        bits, goal = state[:, :num_bits], state[:, num_bits:]
        return {"observation": bits, "achieved_goal": bits, "desired_goal": goal}

    return Dynamics(
        initial=initial,
        step=step,
        observation_spec=dict.fromkeys(
            ("observation", "achieved_goal", "desired_goal"), spec
        ),
        action_spec=BoundedTensorSpec([], tf.int64, 0, num_bits - 1, name="action"),
        num_initial_randoms=num_bits * (1 + random_goals),
        observe=observe,
        max_episode_steps=num_bits,
        render=_draw,
        compute_reward=compute_reward,
    )


def compute_reward(achieved_goal: tf.Tensor, desired_goal: tf.Tensor) -> tf.Tensor:
    """Returns 0 where all bits `[..., num_bits]` equal the goal, else -1, `[...]`."""
    differs = tf.reduce_any(tf.not_equal(achieved_goal, desired_goal), axis=-1)
    return -tf.cast(differs, tf.float32)


def is_task(environment_name: str) -> bool:
    """Whether a name is valid for `from_name`."""
    return _NAME(environment_name) is not None


def from_name(environment_name: str) -> Dynamics:
    """Returns the dynamics of BitFlipping10-v0, with any number of bits.

    BitFlippingToOnes10-v0 always has ones as its goal.
    """
    found = _NAME(environment_name)
    assert found is not None
    return dynamics(int(found["bits"]), random_goals=not found["to_ones"])


def _draw(state: np.ndarray) -> np.ndarray:
    """Returns the picture of a state: the bits, and below them the goal; 1 is white."""
    rows = np.reshape(state, [2, -1]) * 191 + 64
    cells = np.kron(rows, np.ones([_PIXELS, _PIXELS])).astype(np.uint8)
    cells[::_PIXELS] = cells[:, ::_PIXELS] = 0
    return np.repeat(cells[..., np.newaxis], 3, axis=-1)
