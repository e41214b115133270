"""Random rounds of bandits, as experience for agents."""

import keras
import numpy as np
import tensorflow as tf

from tfrl import networks
from tfrl.policies.utils import PerArmPolicyInfo, PolicyInfo
from tfrl.specs import bandit_spec_utils, tensor_spec
from tfrl.trajectories import time_step as ts
from tfrl.trajectories import trajectory


def time_step_spec(size):
    return ts.time_step_spec(tf.TensorSpec([size], tf.float32))


def action_spec(num_actions):
    return tensor_spec.BoundedTensorSpec([], tf.int32, 0, num_actions - 1)


def per_arm_spec(num_global, num_arm, num_actions, *, has_number=False):
    return ts.time_step_spec(
        bandit_spec_utils.create_per_arm_observation_spec(
            num_global, num_arm, num_actions, add_num_actions_feature=has_number
        )
    )


def experience(observation, action, reward, info=None):
    """Frames `[B, T]` of NumPy arrays `[B, T, ...]`."""
    shape = np.shape(action)
    return trajectory.single_step(
        tf.nest.map_structure(tf.constant, observation),
        tf.constant(action, tf.int32),
        PolicyInfo() if info is None else info,
        tf.constant(reward, tf.float32),
        tf.zeros(shape),
    )


def rows(num_rows, size, num_actions, seed=0):
    """Contexts `[n, d]`, actions `[n]` and rewards `[n]`, float32 exact."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=[num_rows, size]).astype(np.float32)
    action = rng.integers(num_actions, size=num_rows).astype(np.int32)
    return x, action, rng.normal(size=num_rows).astype(np.float32)


def chosen(features):
    """The info with the chosen arms' features `[B, T, P]`."""
    return PerArmPolicyInfo(chosen_arm_features=tf.constant(features))


def zeros(specs, shape):
    """Tensors of zeros, with outer dimensions before those of specs."""
    return tf.nest.map_structure(
        lambda spec: tf.zeros([*shape, *spec.shape], spec.dtype), specs
    )


def constant_network(size, *outputs):
    """A network whose outputs are the same for all observations `[size]`."""
    layer = keras.layers.Dense(
        len(outputs),
        kernel_initializer="zeros",
        bias_initializer=lambda shape, dtype=None: tf.constant(outputs, tf.float32),
    )
    return networks.Sequential([layer], tf.TensorSpec([size], tf.float32))
