"""Trains R2D2 on bsuite's memory_len, and scores it as bsuite's analysis does.

    pip install 'tfrl[bsuite]'
    python -m benchmarks.bsuite_memory
    python -m benchmarks.bsuite_memory --experiment=memory_len/10 --seed=3

An episode begins with a bit and ends, so many steps later, with a question for it. All
10,000 episodes count, the random ones at the beginning included. The experiment is
learned if there are fewer errors than 0.75 times the errors of random answers.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time

import examples  # noqa: F401  Sets the variables that TensorFlow reads.
import tfrl
from tfrl import environments

_ITERATIONS = 2_500  # Between two lines.


def make_agent(
    environment: environments.TFEnvironment, length: int, seed: int
) -> tfrl.R2D2:
    """Makes R2D2 for episodes of so many steps."""
    return tfrl.R2D2(
        environment,
        environment_name="memory_len",
        preset="r2d2",
        seed=seed,
        num_iterations=50_000,
        collect_steps_per_iteration=8,
        burn_in_length=0,
        # There is a whole episode in a sequence, wherever it begins.
        trace_length=2 * (length + 1),
        gamma=0.99,
        fc_layer_params=(),
        lstm_size=32,
        learning_rate=2e-3,
        epsilon_decay_iterations=2_000,
        final_epsilon=0.02,
    )


def train(experiment: str, seed: int, folder: str) -> bool:
    """Trains for the experiment's episodes; returns whether they show learning.

    Args:
      experiment: bsuite's name of the setting, such as "memory_len/15".
      seed: The seed of the agent; bsuite fixes the environment's.
      folder: An empty folder for bsuite's records.
    """
    from bsuite import sweep
    from bsuite.experiments.memory_len import analysis
    from bsuite.logging import csv_load

    environment = environments.TFPyEnvironment(
        environments.suite_bsuite.load(experiment, save_path=folder)
    )
    length = sweep.SETTINGS[experiment]["memory_length"]
    loop = make_agent(environment, length, seed).build()
    started, episodes = time.perf_counter(), 0
    while episodes < analysis.NUM_EPISODES:
        loop.run(_ITERATIONS)
        table, _ = csv_load.load_bsuite(folder)
        episodes = table.episode.max()
        right = table.total_perfect.max()
        print(
            f"{episodes:,} episodes, {loop.info().environment_steps:,} steps: "
            f"{right:,} right, "
            f"{2 * (1 - right / episodes):.3f} times the errors of random answers, "
            f"{time.perf_counter() - started:.0f} s",
            flush=True,
        )
    return bool(analysis.score(table))


def main() -> int:
    """Trains and returns the exit status: 0 if the experiment is learned."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.bsuite_memory",
        description=__doc__.partition("\n")[0],
    )
    parser.add_argument("--experiment", default="memory_len/15", help="bsuite's name")
    parser.add_argument("--seed", type=int, default=0, help="seed of the agent")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        is_learned = train(options.experiment, options.seed, folder)
    print("learned" if is_learned else "not learned")
    return 0 if is_learned else 1


if __name__ == "__main__":
    sys.exit(main())
