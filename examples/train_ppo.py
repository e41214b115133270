"""Trains PPO or A2C on any Gymnasium environment.

    python -m examples.train_ppo
    python -m examples.train_ppo --seed=3 --config.learning_rate=3e-4
    python -m examples.train_ppo --config=configs/ppo_pendulum.py
    python -m examples.train_ppo --config=configs/ppo_mujoco.py --env=Hopper-v5
    python -m examples.train_ppo --config=configs/ppo_atari.py --env=ALE/Breakout-v5
    python -m examples.train_ppo --config=configs/a2c.py
    python -m examples.train_ppo --config.lstm_size=64

Both choose discrete and continuous actions. The settings are in configs/ppo.py. To
resume a run that was interrupted or killed, run the same command again. Watch it with
`tensorboard --logdir=logs`, and play the best policy with
`python -m examples.play --logdir=logs/ppo_CartPole-v1_0`.
"""

from __future__ import annotations

from tfrl.command import cli, runs

CONFIG = runs.define_config("ppo")


def main() -> None:
    """Trains the algorithm that the configuration names."""
    runs.run(cli.read_config(CONFIG), ("ppo", "a2c"))


if __name__ == "__main__":
    cli.start(main)
