"""Measures tfrl's bandits: one program of rounds and updates."""

from __future__ import annotations

import os
from typing import Any

import keras

import examples  # noqa: F401  Sets the variables that TensorFlow reads.
from benchmarks.workers import bandit_settings as s
from benchmarks.workers import serving
from tfrl import networks, train
from tfrl.bandits import agents
from tfrl.bandits.environments import problems
from tfrl.environments import native


def rounds(agent: str) -> serving.Task:
    """Makes the task of playing rounds."""
    return s.rounds_task(_loop(agent, "linear", s.Regret(), 0).run)


def regret(agent: str, problem: str, rounds: int, seed: int) -> serving.Task:
    """Plays rounds from a seed, for their regret."""
    total = s.Regret(problem)
    return s.regret_task(_loop(agent, problem, total, seed).run, total, rounds)


def _loop(name: str, problem: str, total: s.Regret, seed: int) -> train.OnPolicyLoop:
    dynamics = {
        "linear": problems.linear(s.THETA, deviation=s.DEVIATION),
        "wheel": problems.wheel(s.DELTA, s.MU_BASE, s.STD_BASE, s.MU_HIGH, s.STD_HIGH),
    }
    bandit = native.NativeEnvironment(dynamics[problem], s.BATCH, seed)
    specs = bandit.time_step_spec(), bandit.action_spec()
    arguments: dict[str, Any] = {"alpha": s.ALPHA[problem]}
    if name == "NeuralEpsilonGreedy":
        network = networks.QNetwork(
            bandit.observation_spec(), specs[1], fc_layer_params=s.LAYERS, seed=seed
        )
        arguments = {
            "reward_network": network,
            "optimizer": keras.optimizers.Adam(s.LEARNING_RATE),
            "epsilon": s.EPSILON,
        }
    return train.OnPolicyLoop(
        bandit,
        getattr(agents, f"{name}Agent")(*specs, **arguments, seed=seed),
        [total],
        collect_steps_per_iteration=s.STEPS,
        seed=seed,
        jit_compile=True,
    )


if __name__ == "__main__":
    serving.serve(
        {"rounds": rounds, "regret": regret},
        ["tensorflow", "keras", "numpy"],
        {"oneDNN": os.environ["TF_ENABLE_ONEDNN_OPTS"]},
    )
