"""Compares PPO on MiniGrid's DoorKey 8x8 with and without a curriculum of sizes.

    python -m benchmarks.curriculum --seeds=3 --steps=300000

Both see the image alone, have the settings of the preset for MiniGrid with a weight of
0.01 for the entropy, and are evaluated in DoorKey 8x8. The curriculum begins at 5x5 and
goes on at a mean return of 0.7.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import gymnasium
from minigrid.envs import doorkey

import tfrl
from tfrl import train

_NAME = "MiniGrid-DoorKeyOfSizes-8x8-v0"
_SIZES = (5, 6, 8)
_THRESHOLD = 0.7
_OPTIONS: dict[str, Any] = {"grid_observations": "image"}


class DoorKeyOfSizes(doorkey.DoorKeyEnv):
    """DoorKey 8x8, whose size may change from an episode to the next."""

    def set_size(self, size: int) -> None:
        """Sets the size of later episodes, and their longest length, in cells."""
        self.width = self.height = size
        self.max_steps = 10 * size**2


def _measure(seed: int, steps: int, has_levels: bool) -> tuple[float, str]:
    """Returns the mean return of 100 episodes, and when it was 0.9, and the level."""
    ppo = tfrl.PPO(
        _NAME,
        seed=seed,
        eval_interval=10,
        log_interval=1,
        entropy_regularization=0.01,
        conv_layer_params=((16, 2, 1), (32, 2, 1)),
        **_OPTIONS,
    )
    levels = train.Curriculum(
        ppo.environment, "set_size", _SIZES, _THRESHOLD, calls=True
    )
    ppo.learn(steps, callbacks=[levels] if has_levels else [], progress=False)
    reached = next(
        (
            f"{row['environment_steps']:,} steps"
            for row in ppo.rows
            if row.get("evaluation_return", 0.0) >= 0.9
        ),
        "never",
    )
    level = f"size {_SIZES[levels.level]}" if has_levels else "no curriculum"
    return ppo.evaluate(100).mean, f"0.9 after {reached}, {level}"


def main() -> None:
    """Prints a line for each run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=300_000)
    given = parser.parse_args()
    gymnasium.register(_NAME, DoorKeyOfSizes, kwargs={"size": 8})
    for seed in range(given.seeds):
        for has_levels in (False, True):
            start = time.process_time()
            mean, text = _measure(seed, given.steps, has_levels)
            seconds = time.process_time() - start
            print(f"seed {seed}: {mean:.3f}, {text}, {seconds:.0f} s", flush=True)


if __name__ == "__main__":
    main()
