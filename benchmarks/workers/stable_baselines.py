"""The tasks of Stable-Baselines3 and of SBX, which has the same API on JAX."""

from __future__ import annotations

import types
from typing import Any

import numpy as np
from stable_baselines3.common import noise

from benchmarks.workers import pendulum_settings, serving, waiting

_CLASSES = {"sac": "SAC", "td3": "TD3", "crossq": "CrossQ"}


def actor_critic(
    package: types.ModuleType,
    algorithm: str,
    batch: int,
    units: int = 256,
    net_arch: Any = None,
    policy: str = "MlpPolicy",
    environment: str = pendulum_settings.ENVIRONMENT,
    waits: float = 0.0,
    **more: Any,
) -> serving.Task:
    """Makes a package's SAC, TD3 or CrossQ.

    Args:
      package: Stable-Baselines3, or SBX.
      algorithm: "sac", "td3" or "crossq".
      batch: Frames in a batch.
      units: The size of each of two layers, where `net_arch` gives none.
      net_arch: The sizes of the layers, in its own form.
      policy: The name of its kind of networks.
      environment: The environment's name.
      waits: Seconds that each of its steps takes more.
      **more: Other arguments of the algorithm.
    """
    made = waiting.make(environment, waits)
    if algorithm == "td3":
        shape = made.action_space.shape or ()
        more["action_noise"] = noise.NormalActionNoise(
            np.zeros(shape), np.full(shape, pendulum_settings.TD3_EXPLORATION_NOISE)
        )
        more["policy_delay"] = pendulum_settings.TD3_DELAY
    if algorithm != "crossq":
        more["tau"] = pendulum_settings.TARGET_UPDATE_TAU
    model = getattr(package, _CLASSES[algorithm])(
        policy,
        made,
        policy_kwargs={"net_arch": net_arch or [units, units]},
        batch_size=batch,
        learning_rate=pendulum_settings.LEARNING_RATE,
        buffer_size=pendulum_settings.REPLAY_CAPACITY,
        learning_starts=pendulum_settings.LEARNING_STARTS,
        gamma=pendulum_settings.GAMMA,
        train_freq=1,
        gradient_steps=1,
        seed=0,
        **more,
    )
    model.learn(pendulum_settings.LEARNING_STARTS)
    return learning(model)


def learning(model: Any) -> serving.Task:
    """Makes a model's `learn`, which steps and updates once in an iteration."""

    def run(count: int) -> dict[str, int]:
        model.learn(count, reset_num_timesteps=False)
        return {"iterations": count, "environment steps": count}

    return serving.Task(run)
