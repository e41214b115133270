"""Frames and small LSTM networks, whose values are worked out in NumPy."""

import numpy as np
import tensorflow as tf

from tfrl.networks import QRnnNetwork
from tfrl.specs import tensor_spec
from tfrl.trajectories import trajectory

FIRST, MID, LAST = 0, 1, 2
OBSERVATION = tf.TensorSpec([2], tf.float32)
ACTION = tensor_spec.BoundedTensorSpec([], tf.int32, 0, 1)
UNITS = 3
# A row in one episode, one across a boundary, one that ends at the window's end.
STEP_TYPE = [
    [FIRST, MID, MID, MID, MID],
    [MID, MID, LAST, FIRST, MID],
    [MID, MID, MID, MID, MID],
]
NEXT_STEP_TYPE = [
    [MID, MID, MID, MID, MID],
    [MID, LAST, FIRST, MID, MID],
    [MID, MID, MID, MID, LAST],
]


def frames(step_type, next_step_type, seed=0):
    rng = np.random.default_rng(seed)
    shape = np.shape(step_type)
    result = trajectory.Trajectory(
        step_type=np.array(step_type, np.int32),
        observation=rng.normal(size=[*shape, 2]).astype(np.float32),
        action=rng.integers(2, size=shape).astype(np.int32),
        policy_info=(),
        next_step_type=np.array(next_step_type, np.int32),
        reward=rng.normal(size=shape).astype(np.float32),
        discount=np.where(np.array(next_step_type) == LAST, 0, 0.9).astype(np.float32),
    )
    return tf.nest.map_structure(tf.constant, result)


def network(seed):
    """An LSTM and a linear layer with random weights."""
    net = QRnnNetwork(
        OBSERVATION,
        ACTION,
        input_fc_layer_params=None,
        lstm_size=(UNITS,),
        output_fc_layer_params=None,
        seed=seed,
    )
    net.create_variables()
    rng = np.random.default_rng(seed)
    for v in net.trainable_variables:
        v.assign(rng.normal(size=v.shape) / 2)
    return net


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def q_by_hand(network, observations, begins, state=None):
    """The values of a network, and its state after each step, `[2, B, T, UNITS]`.

    The state is zero where an episode begins.
    """
    kernel, recurrent, bias, q_kernel, q_bias = (
        v.numpy() for v in network.trainable_variables
    )
    batch, time, _ = observations.shape
    h, c = np.zeros([2, batch, UNITS]) if state is None else state
    values, states = [], []
    for t in range(time):
        h, c = (np.where(begins[:, t, None], 0, s) for s in (h, c))
        gates = observations[:, t] @ kernel + h @ recurrent + bias
        i, f, g, o = np.split(gates, 4, axis=1)
        c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
        h = sigmoid(o) * np.tanh(c)
        values.append(h @ q_kernel + q_bias)
        states.append((h, c))
    return np.stack(values, axis=1), np.stack(states, axis=2)


def returns_by_hand(data, values, valid, gamma, n):
    """The n-step returns of transitions `[B, T - 1]`; 0 where they are masked.

    Args:
      data: The frames, `[B, T]`, as arrays.
      values: The values of the states that the transitions reach, `[B, T - 1]`.
      valid: Whether a transition counts, `[B, T - 1]`.
      gamma: The discount factor.
      n: The number of steps.
    """
    returns = np.zeros(valid.shape)
    batch, time = valid.shape
    for row in range(batch):
        for t in range(time):
            if not valid[row, t]:
                continue
            total, worth, last = 0.0, 1.0, t
            for k in range(t, min(t + n, time)):
                if not valid[row, k]:
                    break
                total += worth * data.reward[row, k]
                worth *= gamma * data.discount[row, k]
                last = k
                if data.next_step_type[row, k] == LAST:
                    break
            returns[row, t] = total + worth * values[row, last]
    return returns
