"""Measures tfrl's loops on a device, with the usual settings of algorithms."""

from __future__ import annotations

import os
from typing import Any

import keras
import numpy as np
import tensorflow as tf

import examples  # noqa: F401  Sets the variables that TensorFlow reads.
from benchmarks.workers import making, serving
from tfrl import agents, environments, networks, replay_buffers, train
from tfrl.compilation import processors
from tfrl.specs import array_spec

_IMAGE = array_spec.BoundedArraySpec((84, 84, 4), np.uint8, 0, 255)
_BUTTONS = array_spec.BoundedArraySpec((), np.int64, 0, 5)
_CONVOLUTIONS = ((32, 8, 4), (64, 4, 2), (64, 3, 1))  # From Mnih et al. (2015).


def example(
    algorithm: str,
    device: str,
    jit_compile: bool,
    native: bool = False,
    **settings: Any,
) -> serving.Task:
    """Makes an algorithm's loop on a device.

    Args:
      algorithm: The name of the algorithm.
      device: The device, such as "GPU:0".
      jit_compile: Whether XLA compiles the loop.
      native: Whether the environment is the native one, and on the device, too.
      **settings: Settings, and their values.
    """
    settings |= {"device": device, "jit_compile": jit_compile}
    with train.device_scope(device):
        return making.loop_task(
            making.algorithm(algorithm, "", native, **settings).build()
        )


def images(
    device: str, jit_compile: bool, envs: int, dtype: str = "float32"
) -> serving.Task:
    """Makes DQN on images from Python, which nobody computes: they are random."""
    environment = environments.TFPyEnvironment(
        environments.random_py_environment.RandomPyEnvironment(
            _IMAGE, _BUTTONS, episode_end_probability=0.01, batch_size=envs
        )
    )
    with train.device_scope(device):
        agent = agents.DqnAgent(
            environment.time_step_spec(),
            environment.action_spec(),
            q_network=networks.QNetwork(
                environment.observation_spec(),
                environment.action_spec(),
                preprocessing_layers=keras.layers.Rescaling(1 / 255),
                conv_layer_params=_CONVOLUTIONS,
                fc_layer_params=(512,),
                dtype=dtype,
                seed=0,
            ),
            optimizer=keras.optimizers.Adam(1e-4),
            epsilon_greedy=0.1,
            target_update_period=1_000,
            seed=0,
        )
        agent.initialize()
        buffer = replay_buffers.TFUniformReplayBuffer(
            agent.collect_data_spec,
            batch_size=envs,
            max_length=10_000 // envs,
            seed=0,
        )
    return making.loop_task(
        train.OffPolicyLoop(
            environment,
            agent,
            buffer,
            initial_collect_steps=100,
            sample_batch_size=32,
            seed=0,
            jit_compile=jit_compile,
        )
    )


def gpus() -> list[str]:
    """Returns the names of the GPUs that TensorFlow sees."""
    details = tf.config.experimental.get_device_details
    return [
        details(gpu).get("device_name", "a GPU without a name")
        for gpu in tf.config.list_physical_devices("GPU")
    ]


if __name__ == "__main__":
    serving.serve(
        {
            "off_policy": example,
            "on_policy": example,
            "images": images,
        },
        ["tensorflow", "keras", "gymnasium"],
        {
            "processor": f"{processors.name()} ({os.cpu_count()} cores)",
            "GPU": "; ".join(gpus()) or "none",
        },
    )
