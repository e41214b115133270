"""Chooses the `tf.distribute` strategy of a script.

`TPU` and `USE_GPU` are absl flags, `--tpu` and `--use_gpu`. They are defined when they
are first used, so an import of this module does not interfere with other programs'
flags.
"""

from __future__ import annotations

from typing import Any

import tensorflow as tf


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


def __getattr__(name: str) -> Any:
    if name not in ("TPU", "USE_GPU"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from absl import flags

    globals().update(
        TPU=flags.DEFINE_string("tpu", None, "Not supported; leave it out."),
        USE_GPU=flags.DEFINE_bool("use_gpu", False, "Whether to train on all GPUs."),
    )
    return globals()[name]
