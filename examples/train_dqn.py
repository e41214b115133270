"""Trains DQN, C51, QR-DQN, IQN, Rainbow or R2D2 on an environment with one action.

    python -m examples.train_dqn
    python -m examples.train_dqn --config.agent=rainbow
    python -m examples.train_dqn --env=Acrobot-v1 --seed=3 --config.learning_rate=5e-4
    python -m examples.train_dqn --env=Pendulum-v1 --config.num_action_bins=11
    python -m examples.train_dqn --replay=prioritized
    python -m examples.train_dqn --config=configs/dqn_atari.py --env=ALE/Breakout-v5

`tfrl.algorithms` makes the agent, with the settings for the environment. To resume a
run that was interrupted or killed, run the same command again. Watch it with
`tensorboard --logdir=logs`, and play the best policy with
`python -m examples.play --logdir=logs/dqn_CartPole-v1_0`.
train_dqn_service.py does the same training with replay in a server.
"""

from __future__ import annotations

from tfrl.command import cli, runs

CONFIG = runs.define_config("dqn")
NAMES = ("dqn", "c51", "qr_dqn", "iqn", "rainbow", "r2d2")


def main() -> None:
    """Trains the algorithm that the configuration names."""
    runs.run(cli.read_config(CONFIG), NAMES)


if __name__ == "__main__":
    cli.start(main)
