"""Laplacian matrices of arms, and sums of weighted contexts: TF-Agents' helpers."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf

from tfrl.policies import utils as policy_utils


def sum_reward_weighted_observations(r: tf.Tensor, x: tf.Tensor) -> tf.Tensor:
    """Returns the sum of `r x` over rows, `[d]`.

    Args:
      r: Rewards, `[n]` or `[n, 1]`.
      x: Contexts, `[n, d]`.
    """
    return tf.linalg.matvec(x, tf.reshape(r, [-1]), transpose_a=True)


def build_laplacian_over_ordinal_integer_actions(action_spec: Any) -> np.ndarray:
    """Returns the Laplacian matrix of arms in a line, float32 `[A, A]`.

    Each arm is related to the one before and the one after.

    Args:
      action_spec: One bounded integer spec of shape `[]`, from 0.
    """
    number = policy_utils.get_num_actions_from_tensor_spec(action_spec)
    adjacent = np.eye(number, k=1) + np.eye(number, k=-1)
    return (np.diag(adjacent.sum(axis=0)) - adjacent).astype(np.float32)


def compute_pairwise_distances(input_vecs: tf.Tensor) -> tf.Tensor:
    """Returns the squared distances of all pairs of vectors `[n, d]`, `[n, n]`."""
    x = tf.convert_to_tensor(input_vecs)
    difference = x[:, tf.newaxis] - x[tf.newaxis]
    return tf.reduce_sum(tf.square(difference), axis=2)


def build_laplacian_nearest_neighbor_graph(
    input_vecs: tf.Tensor, k: int = 1
) -> tf.Tensor:
    """Returns the Laplacian matrix of a graph of nearest neighbours, float32 `[n, n]`.

    Two vectors are related if one is among the `k` nearest of the other.

    Args:
      input_vecs: Vectors, `[n, d]`.
      k: The number of neighbours.
    """
    distances = compute_pairwise_distances(input_vecs)
    number = distances.shape[0]
    # A vector is no neighbour of itself.
    distances = tf.linalg.set_diag(distances, [distances.dtype.max] * number)
    nearest = tf.math.top_k(-distances, k).indices
    one_way = tf.reduce_sum(tf.one_hot(nearest, number), axis=1)
    adjacent = tf.maximum(one_way, tf.transpose(one_way))
    return tf.linalg.diag(tf.reduce_sum(adjacent, axis=1)) - adjacent
