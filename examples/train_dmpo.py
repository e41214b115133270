"""Trains DMPO or MPO on any Gymnasium or dm_control task with bounded actions.

    python -m examples.train_dmpo
    python -m examples.train_dmpo --config=configs/mpo.py
    python -m examples.train_dmpo --seed=3 --config.epsilon_mean=5e-3
    python -m examples.train_dmpo --replay=prioritized
    python -m examples.train_dmpo --num_actors=2

The settings are in configs/dmpo.py; vmin and vmax must fit the rewards of the
environment. With --num_actors, actors in processes of their own collect. To resume a
run that was interrupted or killed, run the same command again. Watch it with
`tensorboard --logdir=logs`, and play the best policy of a run in one process with
`python -m examples.play --logdir=logs/dmpo_Pendulum-v1_0`.
"""

from __future__ import annotations

from tfrl.algorithms import distributed
from tfrl.command import actors, cli, runs

CONFIG = runs.define_config("dmpo")
NUM_ACTORS = actors.define_flag()


def main() -> None:
    """Trains the algorithm, in one process or with actors."""
    config = cli.read_config(CONFIG)
    if NUM_ACTORS.value:
        train_with_actors(config)
        return
    runs.run(config, ("dmpo", "mpo"))


def train_with_actors(config: cli.Config) -> None:
    """Trains on the experience that actors write, as often as one process would."""
    steps = config.collect_steps_per_iteration * config.num_envs
    samples_per_insert = config.batch_size * config.train_steps_per_iteration / steps
    actors.train_with_actors(
        config,
        lambda **flag_values: distributed.of_replay(
            config, samples_per_insert, push_period=10, pull_period=10, **flag_values
        ),
    )


if __name__ == "__main__":
    cli.start(main)
