"""Measures tfrl's loops on a device, with the agents and settings of its examples."""

from __future__ import annotations

import os
from typing import Any

import keras
import numpy as np
import tensorflow as tf

import examples  # noqa: F401  Sets the variables that TensorFlow reads.
from benchmarks import processors
from benchmarks.workers import serving
from tfrl import agents, environments, networks, replay_buffers, train
from tfrl.algorithms import off_policy, registry, worlds
from tfrl.environments import native as native_environments
from tfrl.specs import array_spec

_IMAGE = array_spec.BoundedArraySpec((84, 84, 4), np.uint8, 0, 255)
_BUTTONS = array_spec.BoundedArraySpec((), np.int64, 0, 5)
_CONVOLUTIONS = ((32, 8, 4), (64, 4, 2), (64, 3, 1))  # From Mnih et al. (2015).


def off_policy_example(
    algorithm: str, device: str, jit_compile: bool, **settings: Any
) -> serving.Task:
    """Makes the loop of an example that learns from replay; see `_example`."""
    config, environment, agent = _example(algorithm, device, **settings)
    with train.device_scope(device):
        s = registry.find(config.agent).Settings.of(config)
        buffer = off_policy.make_replay_buffer(
            s, environment, agent, config.num_iterations
        )
    return _task(
        train.OffPolicyLoop(
            environment,
            agent,
            buffer,
            collect_steps_per_iteration=config.collect_steps_per_iteration,
            train_steps_per_iteration=config.train_steps_per_iteration,
            initial_collect_steps=config.initial_collect_steps,
            sample_batch_size=config.batch_size,
            seed=0,
            jit_compile=jit_compile,
        )
    )


def on_policy_example(
    algorithm: str, device: str, jit_compile: bool, **settings: Any
) -> serving.Task:
    """Makes the loop of an example that learns from rollouts; see `_example`."""
    config, environment, agent = _example(algorithm, device, **settings)
    return _task(
        train.OnPolicyLoop(
            environment,
            agent,
            collect_steps_per_iteration=config.collect_steps_per_iteration,
            num_epochs=config.num_epochs,
            minibatch_size=config.minibatch_size or None,
            seed=0,
            jit_compile=jit_compile,
        )
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
    return _task(
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


def _example(
    algorithm: str, device: str, native: bool = False, **settings: Any
) -> tuple[Any, Any, Any]:
    """Makes an example's agent on a device.

    Args:
      algorithm: The name of the example and of its configuration.
      device: The device, such as "GPU:0".
      native: Whether the environment is the native one, and on the device, too.
      **settings: Fields of the configuration, and their values.

    Returns:
      The configuration, the environment and the agent.
    """
    config = registry.config_for(algorithm)
    config.update(settings)
    with train.device_scope(device):
        environment: Any = (
            native_environments.load(config.env, config.num_envs, seed=0)
            if native
            else worlds.make_environment(config.env, config.num_envs, 0)
        )
        agent = registry.algorithm_of(config, environment).make_agent()
        agent.initialize()
    return config, environment, agent


def _task(loop: Any) -> serving.Task:
    def run(count: int) -> dict[str, int]:
        before = loop.info().environment_steps
        steps = loop.run(count).environment_steps - before
        return {"iterations": count, "environment steps": steps}

    return serving.Task(run)


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
            "off_policy": off_policy_example,
            "on_policy": on_policy_example,
            "images": images,
        },
        ["tensorflow", "keras", "gymnasium"],
        {
            "processor": f"{processors.name()} ({os.cpu_count()} cores)",
            "GPU": "; ".join(gpus()) or "none",
        },
    )
