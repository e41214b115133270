"""Trains an algorithm on Pong for some processor time; prints its learning curve.

    python -m benchmarks.workers.pong_with_tfrl ppo SECONDS SEED

`benchmarks.pong` starts it. A line of JSON has the frames of the console so far, the
mean return of the last ten episodes and the processor seconds.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from collections.abc import Mapping
from typing import Any

# oneDNN's kernels, which `tfrl train` chooses for convolutions, too.
os.environ["TF_ENABLE_ONEDNN_OPTS"] = "1"

import examples  # noqa: F401  Sets the other variables that TensorFlow reads.
import tfrl
from benchmarks.pong import FRAMES, GAME
from tfrl import train

# DQN's target network follows every 1,000 steps and the last epsilon is 0.01, as in
# CleanRL's program. For a run of hours, the replay buffer is a tenth of CleanRL's, and
# updates begin after 10,000 steps; epsilon falls during 100,000 steps.
_SETTINGS: dict[str, dict[str, Any]] = {
    "ppo": {"log_interval": 4},
    "dqn": {
        "log_interval": 1_000,
        "replay_capacity": 100_000,
        "initial_collect_steps": 10_000,
        "target_update_period": 250,
        "epsilon_decay_iterations": 25_000,
        "final_epsilon": 0.01,
    },
}


class PrintUntil(train.Callback):
    """Prints the learning curve, and stops the run after some processor time."""

    def __init__(self, seconds: float) -> None:
        """Keeps the processor time of the whole process."""
        self._seconds = seconds

    def on_log(self, row: Mapping[str, Any]) -> None:
        """Prints a point of the curve, if an episode has ended."""
        spent = time.process_time()
        if row.get("average_return") is not None:
            point = {
                "frames": FRAMES * row["environment_steps"],
                "return": row["average_return"],
                "seconds": spent,
            }
            print(json.dumps(point), flush=True)
        if spent >= self._seconds:
            self.stop(f"{spent:.0f} s of processor time")


def main(words: list[str]) -> None:
    """Trains an algorithm until its time is over."""
    name, seconds, seed = words[0], float(words[1]), int(words[2])
    kind = {"ppo": tfrl.PPO, "dqn": tfrl.DQN}[name]
    with tempfile.TemporaryDirectory() as folder:
        algorithm = kind(
            GAME,
            logdir=folder,
            seed=seed,
            num_eval_episodes=1,
            eval_interval=10**9,
            checkpoint_interval=10**9,
            **_SETTINGS[name],
        )
        algorithm.learn(callbacks=[PrintUntil(seconds)], progress=False)


if __name__ == "__main__":
    main(sys.argv[1:])
