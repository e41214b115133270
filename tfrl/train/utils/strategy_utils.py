"""Chooses the `tf.distribute` strategy of a script.

`TPU` and `USE_GPU` are absl flags, `--tpu` and `--use_gpu`, of the scripts that import
this module.
"""

from __future__ import annotations

import tensorflow as tf
from absl import flags

TPU = flags.DEFINE_string("tpu", None, "Not supported; leave it out.")
USE_GPU = flags.DEFINE_bool("use_gpu", False, "Whether to train on all GPUs.")


def get_strategy(tpu: bool | str | None, use_gpu: bool) -> tf.distribute.Strategy:
    """Returns a `MirroredStrategy` over all GPUs, or TensorFlow's default strategy.

    Args:
      tpu: None or False; TPUs are not supported.
      use_gpu: Whether to train on all GPUs of this machine.

    Raises:
      ValueError: Both are given.
      NotImplementedError: `tpu` is given.
    """
    if tpu and use_gpu:
        raise ValueError(
            f"tpu, use_gpu: got {tpu!r} and {use_gpu!r}, expected one of them at most; "
            "set use_gpu=True alone."
        )
    if tpu:
        raise NotImplementedError(
            f"tpu: got {tpu!r}, but tfrl does not train on TPUs, expected None; set "
            "use_gpu=True for the GPUs of this machine."
        )
    if use_gpu:
        return tf.distribute.MirroredStrategy()
    return tf.distribute.get_strategy()
