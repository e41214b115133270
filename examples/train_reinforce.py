"""Trains REINFORCE on any Gymnasium environment whose episodes end.

    python -m examples.train_reinforce
    python -m examples.train_reinforce --config.use_baseline --num_iterations=500

The settings are in configs/reinforce.py. To resume a run that was interrupted or
killed, run the same command again. train_reinforce_service.py does the same training
with a queue of episodes in a server.
"""

from __future__ import annotations

from tfrl.command import cli, runs

CONFIG = runs.define_config("reinforce")


def main() -> None:
    """Trains the algorithm that the configuration names."""
    runs.run(cli.read_config(CONFIG), ("reinforce",))


if __name__ == "__main__":
    cli.start(main)
