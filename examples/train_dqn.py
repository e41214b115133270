"""Trains DQN, C51, QR-DQN, IQN, Rainbow or R2D2 on an environment with one action.

    python -m examples.train_dqn
    python -m examples.train_dqn --config.agent=rainbow
    python -m examples.train_dqn --env=Acrobot-v1 --seed=3 --config.learning_rate=5e-4
    python -m examples.train_dqn --env=Pendulum-v1 --config.num_action_bins=11
    python -m examples.train_dqn --replay=prioritized
    python -m examples.train_dqn --config=configs/dqn_atari.py --env=ALE/Breakout-v5

The settings are in configs/dqn.py, or in c51.py, qr_dqn.py and so on, and dqn.py makes
the agent. To resume a run that was interrupted or killed, run the same command again.
Watch it with `tensorboard --logdir=logs`, and play the best policy with
`python -m examples.play --logdir=logs/dqn_CartPole-v1_0`.
train_dqn_service.py does the same training with replay in a server.
"""

from __future__ import annotations

from examples import cli, dqn, off_policy, runs

CONFIG = cli.define_config("dqn")


def main() -> None:
    """Trains the agent that the configuration names."""
    config = cli.read_config(CONFIG)
    runs.run(config, dqn.ALGORITHMS, dqn.make_agent, off_policy.make_loop)


if __name__ == "__main__":
    cli.start(main)
