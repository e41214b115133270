"""Trains IMPALA on any Gymnasium environment.

    python -m examples.train_impala
    python -m examples.train_impala --seed=3 --config.learning_rate=3e-4
    python -m examples.train_impala --num_actors=2

It chooses discrete and continuous actions. The settings are in configs/impala.py. With
--num_actors, actors in processes of their own collect, and a learner in another one
trains; without, one program does both and is faster on few cores. To resume a run that
was interrupted or killed, run the same command again. Watch it with
`tensorboard --logdir=logs`.
"""

from __future__ import annotations

from tfrl.algorithms import distributed
from tfrl.command import actors, cli, runs

CONFIG = runs.define_config("impala")
NUM_ACTORS = actors.define_flag()


def main() -> None:
    """Trains IMPALA, in one process or with actors."""
    config = cli.read_config(CONFIG)
    if NUM_ACTORS.value:
        train_with_actors(config)
        return
    runs.run(config, ("impala",))


def train_with_actors(config: cli.Config) -> None:
    """Trains on a queue of the sequences that actors write."""
    period = config.collect_update_period
    actors.train_with_actors(
        config,
        lambda **flag_values: distributed.of_queue(
            config,
            push_period=period,
            pull_period=period * config.sequence_length,
            **flag_values,
        ),
    )


if __name__ == "__main__":
    cli.start(main)
