"""Trains PPO on any Gymnasium environment.

    python -m examples.train_ppo
    python -m examples.train_ppo --seed=3 --learning_rate=3e-4
    python -m examples.train_ppo --env=HalfCheetah-v5
    python -m examples.train_ppo --lstm_size=64

It is `tfrl train ppo`, and chooses discrete and continuous actions. To resume a run
that was interrupted or killed, run the same command again. Watch it with `tensorboard
--logdir=logs`, and play the best policy with
`tfrl play logs/ppo_CartPole-v1_0`.
"""

from __future__ import annotations

from tfrl.command import train

if __name__ == "__main__":
    train.start("ppo", __doc__)
