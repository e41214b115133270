"""Replay buffers, which store experience and sample it.

`TFUniformReplayBuffer` keeps everything in `tf.Variable`s and works inside a graph, and
so does `TFPrioritizedReplayBuffer`, which samples frames with large TD errors more
often. Their `row_format` defines the stored form of a frame: `FrameStacking` stores
each frame of stacked observations once, and `Hindsight` relabels goals.
`EpisodicReplayBuffer` keeps whole episodes. `PyUniformReplayBuffer` keeps NumPy arrays,
and `PyHashedReplayBuffer` stores an image that occurs in several stacks only once.

>>> import tensorflow as tf
>>> from tfrl.replay_buffers import TFUniformReplayBuffer
>>> buffer = TFUniformReplayBuffer(
...     tf.TensorSpec([2], tf.float32), batch_size=1, max_length=1_000
... )
>>> for step in range(5):
...     _ = buffer.add_batch(tf.fill([1, 2], float(step)))
>>> int(buffer.num_frames())
5
>>> dataset = buffer.as_dataset(sample_batch_size=3, num_steps=2)
>>> items, info = next(iter(dataset))
>>> items.shape, info.probabilities.numpy().tolist()
(TensorShape([3, 2, 2]), [0.25, 0.25, 0.25])
"""

from tfrl import imports

__getattr__, __dir__, __all__ = imports.attach_stub(__name__, __file__)
