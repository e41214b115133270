"""The losses of distributional critics."""

from __future__ import annotations

from typing import TYPE_CHECKING

import tensorflow as tf

from tfrl.losses.distributional import categorical as categorical
from tfrl.losses.distributional import l2_project as l2_project
from tfrl.losses.distributional import multiaxis_categorical as multiaxis_categorical

if TYPE_CHECKING:
    from tfrl.typing import types


def multiaxis_l2_project(
    z_p: types.TensorLike, p: types.TensorLike, z_q: types.TensorLike
) -> tf.Tensor:
    """Projects distributions onto other atoms of any number of axes; see `l2_project`.

    Args:
      z_p: The atoms, `[B, *C, M]`.
      p: Their probabilities, `[B, *C, M]`.
      z_q: The new atoms, `[*D, N]`, where `C` and `D` broadcast to `E`.

    Returns:
      The probabilities of the new atoms, `[B, *E, N]`.

    Raises:
      ValueError: The shapes do not fit.
    """
    z_p, p, z_q = map(tf.convert_to_tensor, (z_p, p, z_q))
    missing = max(z_q.shape.rank + 1 - z_p.shape.rank, 0)
    aligned = (slice(None), *[tf.newaxis] * missing)
    return l2_project(z_p[aligned], p[aligned], z_q)
