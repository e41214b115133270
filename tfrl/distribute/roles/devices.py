"""The devices of a run's processes: visible GPUs, and the devices of replicas.

TensorFlow takes nearly all memory of each GPU that it sees when it first computes
something, whether or not anything is placed there. So a GPU should be visible only to
the processes that use it.
"""

from __future__ import annotations

import logging

import tensorflow as tf

_LOGGER = logging.getLogger("tfrl.distribute")


def hide_gpus() -> None:
    """Hides the GPUs of this host from this process, so that it takes none of them.

    If TensorFlow has already computed something, it is too late to hide them, and the
    function warns.
    """
    if not tf.config.list_physical_devices("GPU"):
        return
    try:
        tf.config.set_visible_devices([], "GPU")
    except RuntimeError:
        _LOGGER.warning(
            "TensorFlow has computed something in this process before the run, so GPUs "
            "cannot be hidden from it, and it keeps their memory from the learner; "
            "compute nothing earlier, or set TF_FORCE_GPU_ALLOW_GROWTH=true."
        )


def limit_to(device: str) -> None:
    """Hides the GPUs of this host from this process if its device is the CPU.

    Args:
      device: Such as "CPU" or "GPU:0"; "" is TensorFlow's choice, a GPU if possible.
    """
    if device.upper().startswith("CPU"):
        hide_gpus()


def mirrored(num_replicas: int) -> tf.distribute.MirroredStrategy | None:
    """Returns a strategy of several replicas on this host; None for a single one.

    Each replica has a GPU. If there are too few GPUs, each replica has a part of the
    CPU instead, which is no faster than one replica.

    Args:
      num_replicas: The number of replicas.

    Raises:
      RuntimeError: TensorFlow has computed something before in this process, so that
        the CPU cannot be divided.
    """
    if num_replicas == 1:
        return None
    kind = "GPU"
    if len(tf.config.list_physical_devices(kind)) < num_replicas:
        kind = "CPU"
        tf.config.set_logical_device_configuration(
            tf.config.list_physical_devices(kind)[0],
            [tf.config.LogicalDeviceConfiguration() for _ in range(num_replicas)],
        )
    devices = [f"{kind}:{number}" for number in range(num_replicas)]
    return tf.distribute.MirroredStrategy(devices)
