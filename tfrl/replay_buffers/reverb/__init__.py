"""The parts of `ReverbReplayBuffer`, and the observers that write to its table.

>>> import numpy as np
>>> from tfrl.replay_buffers.reverb import reverb_rollouts
>>> reverb_rollouts.stack_padded([np.ones(1), np.ones(3)]).shape
(2, 3)
"""
