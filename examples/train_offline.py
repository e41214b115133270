"""Trains IQL, CQL or behavioural cloning on recorded episodes of an environment.

    python -m examples.record --logdir=logs/sac_Pendulum-v1_0
    python -m examples.train_offline
    python -m examples.train_offline --config.agent=cql
    python -m examples.train_offline --env=Hopper-v5 --config.data=FOLDER

FOLDER is a dataset of Minari's, such as ~/.minari/datasets/mujoco/hopper/expert-v0. The
settings are in configs/offline.py. The environment serves to evaluate the policy
only. To resume a run that was interrupted or killed, run the same command again. Watch
it with `tensorboard --logdir=logs`, and play the best policy with
`python -m examples.play --logdir=logs/iql_Pendulum-v1_0`.
"""

from __future__ import annotations

from tfrl.command import cli, runs

CONFIG = runs.define_config("iql")


def main() -> None:
    """Trains the algorithm that the configuration names."""
    runs.run(cli.read_config(CONFIG), ("iql", "cql", "bc"))


if __name__ == "__main__":
    cli.start(main)
