"""Measures SBX, Stable-Baselines3's algorithms on JAX, with one thread."""

from __future__ import annotations

from typing import Any

import sbx

from benchmarks.workers import serving, stable_baselines


def actor_critic(**settings: Any) -> serving.Task:
    """Makes its SAC or TD3 on Pendulum."""
    return stable_baselines.actor_critic(sbx, **settings)


if __name__ == "__main__":
    serving.serve(
        {"actor_critic": actor_critic},
        ["sbx-rl", "stable-baselines3", "jax", "flax", "gymnasium", "numpy"],
    )
