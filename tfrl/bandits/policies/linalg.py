"""Inverses of symmetric matrices."""

from __future__ import annotations

import tensorflow as tf

# The least ridge, as a share of a feature's sum of squares. With it, the sums of
# features that depend on each other have an inverse in float64.
_LEAST_SHARE = 1e-12


def conjugate_gradient(
    a_mat: tf.Tensor, b_mat: tf.Tensor, tol: float = 1e-10
) -> tf.Tensor:
    """Returns `X` with `A X = B`.

    The name is TF-Agents'. The solution is exact, by a Cholesky factor, so it does not
    depend on `tol` or on the number of columns.

    Args:
      a_mat: A symmetric positive definite matrix, `[n, n]`.
      b_mat: `[n, k]`.
      tol: Has no effect.

    Raises:
      ValueError: The shapes do not match.
    """
    del tol
    _check_square("a_mat", a_mat)
    if not a_mat.shape[1:].is_compatible_with(b_mat.shape[:1]):
        raise ValueError(
            f"b_mat: got shape {b_mat.shape} for a_mat of shape {a_mat.shape}, "
            "expected as many rows; transpose it."
        )
    return tf.linalg.cholesky_solve(tf.linalg.cholesky(a_mat), b_mat)


def simplified_woodbury_update(a_inv: tf.Tensor, u: tf.Tensor) -> tf.Tensor:
    """Returns `W` with `(A + U'U)^-1 = A^-1 + W`.

    Args:
      a_inv: The inverse of a symmetric matrix, `[m, m]`.
      u: `[n, m]`; no rows give zeros.

    Raises:
      ValueError: The shapes do not match.
    """
    _check_square("a_inv", a_inv)
    if u.shape.rank != 2 or not u.shape[1:].is_compatible_with(a_inv.shape[1:]):
        raise ValueError(
            f"u: got shape {u.shape} for a_inv of shape {a_inv.shape}, expected "
            "[n, m]; give a row for each vector."
        )
    projected = tf.matmul(u, a_inv)
    identity = tf.eye(tf.shape(u)[0], dtype=u.dtype)
    capacitance = identity + tf.matmul(projected, u, transpose_b=True)
    solved = tf.linalg.solve(capacitance, projected)
    return -tf.matmul(projected, solved, transpose_a=True)


def update_inverse(a_inv: tf.Tensor, x: tf.Tensor) -> tf.Tensor:
    """Returns what rows `x` add to an inverse; see `simplified_woodbury_update`."""
    return simplified_woodbury_update(a_inv, x)


def inverses(matrices: tf.Tensor, ridge: float) -> tf.Tensor:
    """Returns `(A + ridge I)^-1` of each matrix, symmetric, `[M, d, d]`.

    Where 1e-12 of an element of A's diagonal is above the ridge, it takes its place.

    Args:
      matrices: Symmetric positive semidefinite matrices `[M, d, d]`.
      ridge: A positive number.
    """
    identity = tf.eye(matrices.shape[-1], dtype=matrices.dtype)
    diagonal = tf.linalg.diag_part(matrices)
    diagonal += tf.maximum(tf.cast(ridge, matrices.dtype), _LEAST_SHARE * diagonal)
    factors = tf.linalg.cholesky(tf.linalg.set_diag(matrices, diagonal))
    identities = tf.broadcast_to(identity, tf.shape(matrices))
    halves = tf.linalg.triangular_solve(factors, identities)
    return tf.matmul(halves, halves, transpose_a=True)


def add_rows(
    inverses: tf.Tensor, rows: tf.Tensor, weights: tf.Tensor, models: tf.Tensor
) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns inverses after updates of rank one, in the order of the rows.

    A row x of weight w changes the inverse P of its model to
    `P - w P x x' P / (1 + w x' P x)` (Sherman and Morrison, 1950). The
    subtraction cancels about as many digits as `w x' P x` has before its point.

    Args:
      inverses: Symmetric inverses, `[M, d, d]`.
      rows: Vectors, `[n, d]`.
      weights: Their weights from 0 up, `[n]`.
      models: The number of each row's model, int32 `[n]`.

    Returns:
      The inverses, and the largest `w x' P x`, a scalar.
    """
    number = rows.shape[0]

    def add(
        i: tf.Tensor, inverses: tf.Tensor, largest: tf.Tensor
    ) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        row, weight, model = rows[i], weights[i], models[i]
        projected = tf.linalg.matvec(inverses[model], row)
        gain = weight * tf.tensordot(row, projected, 1)
        change = weight / (1 + gain) * projected[:, tf.newaxis] * projected
        inverses = tf.tensor_scatter_nd_sub(inverses, [[model]], [change])
        return i + 1, inverses, tf.maximum(largest, gain)

    _, inverses, largest = tf.while_loop(
        lambda i, *_: i < number,
        add,
        (tf.constant(0), inverses, tf.zeros([], inverses.dtype)),
        maximum_iterations=number,
    )
    return inverses, largest


def _check_square(name: str, matrix: tf.Tensor) -> None:
    shape = matrix.shape
    if shape.rank != 2 or not shape[:1].is_compatible_with(shape[1:]):
        raise ValueError(
            f"{name}: got shape {shape}, expected a square matrix [n, n]; give one."
        )
