"""The parts of `ReverbReplayBuffer`: rows, contents, datasets and the writer.

>>> import numpy as np
>>> from tfrl.replay_buffers.reverb import reverb_rows
>>> reverb_rows.stack_padded([np.ones(1), np.ones(3)]).shape
(2, 3)
"""
