"""The replay buffer of bandits, at TF-Agents' path.

>>> from tfrl.bandits import replay_buffers
>>> replay_buffers.BanditReplayBuffer.__name__
'TFUniformReplayBuffer'
"""

from tfrl import imports

__getattr__, __dir__, __all__ = imports.attach_stub(__name__, __file__)
