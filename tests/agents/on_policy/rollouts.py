"""Frames as an agent collects them, for the tests of agents that learn on-policy."""

import numpy as np
import tensorflow as tf

from tfrl.trajectories import time_step as ts
from tfrl.trajectories import trajectory

FIRST, MID, LAST = 0, 1, 2
# Frames by a letter: a step that starts an episode (f) or is inside one (m), which ends
# at a termination (M, F) or at a time limit (T, S); a boundary (b); padding (0).
STEPS = {
    "f": (FIRST, MID, 1),
    "m": (MID, MID, 1),
    "M": (MID, LAST, 0),
    "F": (FIRST, LAST, 0),
    "T": (MID, LAST, 1),
    "S": (FIRST, LAST, 1),
    "b": (LAST, FIRST, 1),
    "0": (FIRST, FIRST, 0),
}


def collect(agent, *rows, seed=0, state=()):
    """Returns frames `[B, T + 1]`, one letter each, and the policy's last state.

    Observations and rewards are random; the collect policy draws the actions.
    """
    rng = np.random.default_rng(seed)
    types, next_types, discounts = np.transpose(
        [[STEPS[letter] for letter in row] for row in rows], [2, 1, 0]
    )
    frames = []
    for t in range(len(rows[0])):
        observation = tf.nest.map_structure(
            lambda spec: tf.constant(
                rng.normal(1.0, 2.0, [len(rows), *spec.shape]), spec.dtype
            ),
            agent.time_step_spec.observation,
        )
        reward = tf.constant(rng.normal(1.0, 2.0, len(rows)), tf.float32)
        step = ts.TimeStep(
            tf.constant(types[t], tf.int32), reward, tf.ones_like(reward), observation
        )
        action = agent.collect_policy.action(step, state, seed=t)
        state = action.state
        frames.append(
            trajectory.Trajectory(
                step_type=step.step_type,
                observation=observation,
                action=action.action,
                policy_info=action.info,
                next_step_type=tf.constant(next_types[t], tf.int32),
                reward=reward,
                discount=tf.constant(discounts[t], tf.float32),
            )
        )
    return tf.nest.map_structure(lambda *leaves: tf.stack(leaves, 1), *frames), state


def flat(data):
    """Returns frames `[B, T, ...]` as minibatches have them, `[B * T, 1, ...]`."""
    return tf.nest.map_structure(lambda x: tf.reshape(x, [-1, 1, *x.shape[2:]]), data)
