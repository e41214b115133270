"""Trains TD3 or DDPG on any Gymnasium environment with bounded continuous actions.

    python -m examples.train_td3
    python -m examples.train_td3 --config.agent=ddpg --seed=3
    python -m examples.train_td3 --config=configs/td3_mountain_car.py
    python -m examples.train_td3 --config=configs/td3_mujoco.py --env=HalfCheetah-v5
    python -m examples.train_td3 --replay=prioritized

The settings are in configs/td3.py. To resume a run that was interrupted or killed, run
the same command again. Watch it with `tensorboard --logdir=logs`, and play the best
policy with `python -m examples.play --logdir=logs/td3_Pendulum-v1_0`.
"""

from __future__ import annotations

from tfrl.command import cli, runs

CONFIG = runs.define_config("td3")


def main() -> None:
    """Trains the algorithm that the configuration names."""
    runs.run(cli.read_config(CONFIG), ("td3", "ddpg"))


if __name__ == "__main__":
    cli.start(main)
