"""Compares PPO on MiniGrid's DoorKey 8x8 with and without a curriculum of sizes.

    python -m benchmarks.curriculum --seeds=3 --steps=400000

Both see the image alone, have the settings of the preset for MiniGrid with a weight of
0.01 for the entropy, and are evaluated in DoorKey 8x8. The curriculum begins at 5x5 and
goes on at a mean return of 0.7.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import gymnasium
from minigrid import wrappers

import tfrl
from tfrl import train

_SIZES = (5, 6, 8)
_THRESHOLD = 0.7


class DoorKey(wrappers.ImgObsWrapper):
    """DoorKey 8x8, whose size may change from an episode to the next."""

    def __init__(self) -> None:
        """Makes the environment."""
        super().__init__(gymnasium.make("MiniGrid-DoorKey-8x8-v0"))

    def set_size(self, size: int) -> None:
        """Sets the size of later episodes, and their longest length, in cells."""
        game: Any = self.env.unwrapped
        game.width = game.height = size
        game.max_steps = 10 * size**2


def _measure(seed: int, steps: int, has_levels: bool) -> tuple[float, int | None]:
    """Returns the mean return of 100 episodes, and the steps until 0.9."""
    ppo = tfrl.PPO(
        DoorKey,
        environment_name="MiniGrid-DoorKey-8x8-v0",
        preset="ppo_minigrid",
        seed=seed,
        eval_interval=10,
        log_interval=1,
        entropy_regularization=0.01,
        conv_layer_params=((16, 2, 1), (32, 2, 1)),
        normalize_observations=False,
    )
    levels = train.Curriculum(
        ppo.environment, "set_size", _SIZES, _THRESHOLD, calls=True
    )
    ppo.learn(steps, callbacks=[levels] if has_levels else [], progress=False)
    reached = (
        row["environment_steps"]
        for row in ppo.rows
        if row.get("evaluation_return", 0.0) >= 0.9
    )
    return ppo.evaluate(100).mean, next(reached, None)


def main() -> None:
    """Prints a line for each run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=400_000)
    given = parser.parse_args()
    for seed in range(given.seeds):
        for has_levels in (False, True):
            start = time.process_time()
            mean, reached = _measure(seed, given.steps, has_levels)
            print(
                f"seed {seed}, {'with' if has_levels else 'without'} a curriculum: "
                f"{mean:.3f}, 0.9 after {reached} steps, "
                f"{time.process_time() - start:.0f} s",
                flush=True,
            )


if __name__ == "__main__":
    main()
