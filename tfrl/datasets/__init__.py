"""Recorded experience as `tf.data`, and as the contents of replay buffers.

Recordings are files of `utils.example_encoding_dataset`, or Minari's files.

>>> import tensorflow as tf
>>> from tfrl import datasets
>>> frames = datasets.frames_of_episode(
...     observations=[[0.0], [1.0], [2.0]],
...     actions=[0, 1],
...     rewards=[1.0, 1.0],
...     terminations=[False, True],
... )
>>> episode = tf.data.Dataset.from_tensor_slices(frames)
>>> len(list(datasets.transitions(episode)))
2
>>> datasets.episode_returns(episode)
array([2.], dtype=float32)
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
