"""Trains REINFORCE on any Gymnasium environment whose episodes end.

    python -m examples.train_reinforce
    python -m examples.train_reinforce --use_baseline --num_iterations=500

It is `tfrl train reinforce`. To resume a run that was interrupted or killed, run the
same command again. train_reinforce_service.py does the same training with a queue of
episodes in a server.
"""

from __future__ import annotations

from tfrl.command import train

if __name__ == "__main__":
    train.start("reinforce", __doc__)
