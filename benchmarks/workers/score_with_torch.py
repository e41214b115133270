"""Scores Stable-Baselines3's SAC with its defaults, to compare at equal steps.

    PYTHON benchmarks/workers/score_with_torch.py --env=Hopper-v5 --steps=50000

PYTHON is a Python with stable-baselines3 and gymnasium[mujoco]. The
episodes are greedy ones of the current weights, as in benchmarks/scores.py.
"""

from __future__ import annotations

import argparse
import time

import stable_baselines3
import torch
from stable_baselines3.common import env_util, evaluation

_INTERVAL = 10_000  # Steps between evaluations.


def main() -> None:
    """Trains, and prints the mean return of greedy episodes every 10,000 steps."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--env", default="Hopper-v5")
    parser.add_argument("--steps", type=int, default=50_000)
    parser.add_argument("--initial_steps", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--episodes", type=int, default=50)
    options = parser.parse_args()
    torch.set_num_threads(1)
    model = stable_baselines3.SAC(
        "MlpPolicy",
        options.env,
        learning_starts=options.initial_steps,
        seed=options.seed,
        device="cpu",
    )
    environment = env_util.make_vec_env(options.env, seed=123_456)
    print(
        f"Stable-Baselines3 {stable_baselines3.__version__}, SAC on {options.env}, "
        f"seed {options.seed}; returns over {options.episodes} episodes:"
    )
    seconds = 0.0
    while model.num_timesteps < options.steps:
        started = time.process_time()
        model.learn(_INTERVAL, reset_num_timesteps=False)
        seconds += time.process_time() - started
        mean, deviation = evaluation.evaluate_policy(
            model, environment, options.episodes, deterministic=True
        )
        print(
            f"{model.num_timesteps:,} steps, {seconds:.0f} s of CPU time: "
            f"{mean:.1f} (deviation {deviation:.1f})",
            flush=True,
        )


if __name__ == "__main__":
    main()
