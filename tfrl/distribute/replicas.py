"""The replicas of a learner in one process."""

from __future__ import annotations

import tensorflow as tf


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
