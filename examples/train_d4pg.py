"""Trains D4PG on any Gymnasium or dm_control task with bounded continuous actions.

    python -m examples.train_d4pg
    python -m examples.train_d4pg --seed=3 --config.critic_learning_rate=5e-4
    python -m examples.train_d4pg --config=configs/d4pg_cartpole.py
    python -m examples.train_d4pg --replay=prioritized

The settings are in configs/d4pg.py; vmin and vmax must fit the rewards of the
environment. To resume a run that was interrupted or killed, run the same command again.
Watch it with `tensorboard --logdir=logs`, and play the best policy with `python -m
examples.play --logdir=logs/d4pg_Pendulum-v1_0`.
"""

from __future__ import annotations

from tfrl.command import cli, runs

CONFIG = runs.define_config("d4pg")


def main() -> None:
    """Trains the algorithm that the configuration names."""
    runs.run(cli.read_config(CONFIG), ("d4pg",))


if __name__ == "__main__":
    cli.start(main)
