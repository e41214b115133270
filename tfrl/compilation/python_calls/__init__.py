"""Calls from programs into Python.

`graph_calls` makes them from plain graphs, `host_calls` from programs that XLA compiled
(over its interface, `xla_ffi`), and `gpu_calls` from such programs on a GPU.

>>> import tensorflow as tf
>>> from tfrl.compilation.python_calls import graph_calls
>>> call = graph_calls.OrderedCalls()
>>> @tf.function(autograph=False)
... def run(x):
...     return call(lambda x: [2 * x], [x], [tf.TensorSpec([], tf.int64)])[0]
>>> int(run(tf.constant(21, tf.int64)))
42
"""
