"""Trains PQN on any Gymnasium environment with one action.

    python -m examples.train_pqn
    python -m examples.train_pqn --env=Acrobot-v1 --seed=3
    python -m examples.train_pqn --env=Pendulum-v1 --config.num_action_bins=11

It is Q-learning from rollouts, without replay. The settings are in configs/pqn.py. To
resume a run that was interrupted or killed, run the same command again. Watch it with
`tensorboard --logdir=logs`, and play the best policy with
`python -m examples.play --logdir=logs/pqn_CartPole-v1_0`.
"""

from __future__ import annotations

from tfrl.command import cli, runs

CONFIG = runs.define_config("pqn")


def main() -> None:
    """Trains the algorithm that the configuration names."""
    runs.run(cli.read_config(CONFIG), ("pqn",))


if __name__ == "__main__":
    cli.start(main)
