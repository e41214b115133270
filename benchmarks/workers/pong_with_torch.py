"""Trains Stable-Baselines3's PPO on Pong for some processor time; prints its curve.

    PYTHON benchmarks/workers/pong_with_torch.py SECONDS SEED

`benchmarks.pong` starts it; PYTHON is the peers' "torch". Its lines are as those of
`pong_with_tfrl`, and so are its settings.
"""

from __future__ import annotations

import json
import sys
import time

import ale_py
import gymnasium
import numpy as np
import stable_baselines3
import torch
from stable_baselines3.common import callbacks, env_util, vec_env

_GAME = "PongNoFrameskip-v4"
_FRAMES = 4  # Of an action.
_ENVIRONMENTS = 8
_ITERATIONS = 9_765
_STEPS = 128


class PrintUntil(callbacks.BaseCallback):
    """Prints the learning curve, and stops the training after some processor time."""

    def __init__(self, seconds: float) -> None:
        """Keeps the processor time of the whole process."""
        super().__init__()
        self._seconds = seconds

    def _on_step(self) -> bool:
        return time.process_time() < self._seconds

    def _on_rollout_end(self) -> None:
        episodes = list(self.model.ep_info_buffer)[-10:]
        if episodes:
            point = {
                "frames": _FRAMES * self.num_timesteps,
                "return": float(np.mean([episode["r"] for episode in episodes])),
                "seconds": time.process_time(),
            }
            print(json.dumps(point), flush=True)


def main(words: list[str]) -> None:
    """Trains PPO until its time is over."""
    seconds, seed = float(words[0]), int(words[1])
    torch.set_num_threads(1)
    gymnasium.register_envs(ale_py)
    games = env_util.make_atari_env(_GAME, _ENVIRONMENTS, seed)
    model = stable_baselines3.PPO(
        "CnnPolicy",
        vec_env.VecFrameStack(games, 4),
        n_steps=_STEPS,
        batch_size=256,
        n_epochs=4,
        learning_rate=lambda remaining: 2.5e-4 * remaining,
        clip_range=lambda remaining: 0.1 * remaining,
        ent_coef=0.01,
        seed=seed,
        device="cpu",
    )
    model.learn(_ITERATIONS * _STEPS * _ENVIRONMENTS, callback=PrintUntil(seconds))


if __name__ == "__main__":
    main(sys.argv[1:])
