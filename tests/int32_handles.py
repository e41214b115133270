"""The variables of int32 that are made, and where a GPU would have them.

TensorFlow's operation `VarHandleOp` makes every variable. It has no GPU kernel for
int32, so TensorFlow makes such a variable on the CPU whatever the scope. The device of
a handle is the device of its variable.
"""

import contextlib
from unittest import mock

import tensorflow as tf
from tensorflow.python.ops import gen_resource_variable_ops

_make_handle = gen_resource_variable_ops.var_handle_op


@contextlib.contextmanager
def recorded(*, on_the_host=False):
    """Yields a list of the names of the variables of int32 that the context makes.

    Args:
      on_the_host: Whether they are made on the first CPU, as on a machine with a GPU.
    """
    names = []

    def make_handle(*, dtype, name, **kwargs):
        place = contextlib.nullcontext()
        if dtype == tf.int32:
            names.append(name)
            place = tf.device("CPU:0") if on_the_host else place
        with place:
            return _make_handle(dtype=dtype, name=name, **kwargs)

    with mock.patch.object(gen_resource_variable_ops, "var_handle_op", make_handle):
        yield names
