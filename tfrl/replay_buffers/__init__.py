"""Replay buffers: in-process storage of experience, written in and sampled from.

`TFUniformReplayBuffer` keeps everything in `tf.Variable`s and works inside a graph;
`PyUniformReplayBuffer` keeps NumPy arrays; `EpisodicReplayBuffer` keeps whole episodes.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
