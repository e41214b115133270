"""Replay as a server of its own, with Reverb's API.

`from tfrl import replay_service as reverb`, and code written for Reverb runs: tables
with selectors and rate limiters in a server process, writers that insert overlapping
trajectories, and `tf.data` datasets that sample them, from this host or another.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
