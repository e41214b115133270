"""Plays a saved policy: prints its returns and films it.

    python -m examples.play --logdir=logs/dqn_CartPole-v1_0 --num_episodes=20
    python -m examples.play --policy=some/saved_policy --env=CartPole-v1

The policy is a SavedModel, which training writes to LOGDIR/policy; it needs no agent.
"""

from tfrl.command import cli, play

play.define_flags()

if __name__ == "__main__":
    cli.start(play.main)
