"""Trains SAC, TQC or discrete SAC on any Gymnasium environment with suitable actions.

    python -m examples.train_sac
    python -m examples.train_sac --seed=3 --config.critic_learning_rate=5e-4
    python -m examples.train_sac --config=configs/sac_mountain_car.py
    python -m examples.train_sac --config=configs/sac_mujoco.py --env=HalfCheetah-v5
    python -m examples.train_sac --config.agent=tqc --replay=prioritized
    python -m examples.train_sac --config=configs/discrete_sac.py

SAC and TQC choose bounded continuous actions, and discrete SAC a discrete one. The
settings are in configs/sac.py. To resume a run that was interrupted or killed, run the
same command again. Watch it with `tensorboard --logdir=logs`, and play the best policy
with `python -m examples.play --logdir=logs/sac_Pendulum-v1_0`.
"""

from __future__ import annotations

from tfrl.command import cli, runs

CONFIG = runs.define_config("sac")


def main() -> None:
    """Trains the algorithm that the configuration names."""
    runs.run(cli.read_config(CONFIG), ("sac", "tqc", "discrete_sac"))


if __name__ == "__main__":
    cli.start(main)
