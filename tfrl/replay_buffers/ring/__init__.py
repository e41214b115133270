"""The ring buffer in variables that uniform and prioritized buffers share.

>>> import tensorflow as tf
>>> from tfrl.replay_buffers import table
>>> specs = (tf.TensorSpec([2], tf.float32), tf.TensorSpec([], tf.bool))
>>> rows = table.PackedTable(specs, capacity=8)
>>> block = (tf.ones([2, 2]), tf.constant([True, False]))
>>> _ = rows.write_block(tf.constant(1), block)
>>> observations, flags = rows.read(tf.constant([3]))
>>> observations.numpy().tolist(), flags.numpy().tolist()
([[1.0, 1.0]], [False])
"""
