"""Trains SAC on any Gymnasium environment with bounded continuous actions.

    python -m examples.train_sac
    python -m examples.train_sac --seed=3 --critic_learning_rate=5e-4
    python -m examples.train_sac --config=configs/sac_walker.py

It is `tfrl train sac`. To resume a run that was interrupted or killed, run the same
command again. Watch it with `tensorboard --logdir=logs`, and play the best policy with
`tfrl play logs/sac_Pendulum-v1_0`.
"""

from __future__ import annotations

from tfrl.command import train

if __name__ == "__main__":
    train.start("sac", __doc__)
