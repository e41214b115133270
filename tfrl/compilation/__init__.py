"""The machinery of the compilers: XLA, `tf.function` and `tf.data`.

Every module works around a limit or a cost of these three, and imports nothing else of
`tfrl`. `context` says whether XLA compiles the graph being built, `python_calls` calls
Python from programs, compiled or not, `words` packs small tensors into one,
`variable_substitution` turns code that keeps its state in variables into a pure
function, `vectorized_map_converters` teaches `tf.vectorized_map` more operations,
`program_cache` keeps compiled programs for later processes, and calls of
`fast_function` and `fast_dataset` cost less than calls of `tf.function` and `tf.data`.
`internals` is the only module that names private symbols of TensorFlow and Keras.

>>> import tensorflow as tf
>>> from tfrl.compilation import variable_substitution
>>> counter = tf.Variable(0)
>>> @tf.function(autograph=False)
... def count(before):
...     with variable_substitution.substituted([counter], [before]) as substitution:
...         counter.assign_add(1)
...         return substitution.tensors()[0]
>>> int(count(tf.constant(41))), int(counter)
(42, 0)
"""
