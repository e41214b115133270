"""Trains DQN on an environment with one discrete action.

    python -m examples.train_dqn
    python -m examples.train_dqn --env=Acrobot-v1 --seed=3 --learning_rate=5e-4
    python -m examples.train_dqn --env=Pendulum-v1 --num_action_bins=11
    python -m examples.train_dqn --replay=prioritized
    python -m examples.train_dqn --config=configs/dqn_breakout.py

It is `tfrl train dqn`. To resume a run that was interrupted or killed, run the same
command again. Watch it with `tensorboard --logdir=logs`, and play the best policy with
`tfrl play logs/dqn_CartPole-v1_0`. train_dqn_service.py does the same training
with replay in a server.
"""

from __future__ import annotations

from tfrl.command import train

if __name__ == "__main__":
    train.start("dqn", __doc__)
