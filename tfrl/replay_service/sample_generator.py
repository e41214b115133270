"""Batches of samples as a generator in `tf.data`, each by one call of Python.

A stream waits for its server only a moment at a time, and between gives the pipeline an
empty batch, which is dropped: so the pipeline notices when its iterator is deleted,
however long a limiter takes.
"""

from __future__ import annotations

import atexit
import functools
import itertools
import json
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from tfrl.replay_service import specs_json, wire
from tfrl.replay_service.sample_rows import INFO_DTYPES
from tfrl.replay_service.sampler import Exhausted, SampleStream

_SLICE = 0.1  # Seconds that a call waits for the server.
_MOST_TAKEN_APART = 256  # Rows that come at once to be handed out one by one.


def generate(
    spec: Any,
    server_address: Any,
    table: Any,
    config: Any,
    batch_size: Any,
    drop_remainder: Any,
) -> tf.data.Dataset:
    """Returns a dataset of batches, each iterator of which has a stream of its own.

    Args:
      spec: The nest of specs of a batch.
      server_address: "host:port", a string tensor as the next two.
      table: Its name.
      config: In JSON, the other arguments of `SampleStream`.
      batch_size: int64; 0 for batches of as many rows as there are.
      drop_remainder: Whether to leave out a last batch that is smaller, a boolean.
    """
    leaves = tf.nest.flatten(spec)
    dtypes = [leaf.dtype for leaf in leaves]
    functions = _functions(tuple(dtypes))
    variant = tf.raw_ops.GeneratorDataset(
        init_func_other_args=[
            server_address,
            table,
            config,
            batch_size,
            drop_remainder,
        ],
        next_func_other_args=[],
        finalize_func_other_args=[],
        init_func=functions.open,
        next_func=functions.next,
        finalize_func=functions.close,
        output_types=dtypes,
        output_shapes=[leaf.shape for leaf in leaves],
    )
    batches = tf.data.experimental.from_variant(variant, tuple(leaves))
    batches = batches.filter(lambda *components: tf.shape(components[0])[0] > 0)
    return tf.data.experimental.from_variant(
        tf.data.experimental.to_variant(batches), spec
    )


class _Functions(NamedTuple):
    """What `GeneratorDataset` calls."""

    open: Any
    next: Any
    close: Any


@functools.cache
def _functions(dtypes: tuple[Any, ...]) -> _Functions:
    """Returns functions for elements of these dtypes, which all datasets share."""
    number = tf.TensorSpec([], tf.int64)
    text = tf.TensorSpec([], tf.string)
    # AutoGraph would look into the Python functions at every call.
    function = functools.partial(tf.function, autograph=False)
    with tf.init_scope():
        opened = function(
            lambda *arguments: tf.ensure_shape(
                tf.numpy_function(_open, arguments, tf.int64), []
            )
        )
        following = function(
            lambda reader: tf.numpy_function(_next, [reader], list(dtypes))
        )
        closed = function(lambda reader: tf.numpy_function(_close, [reader], tf.int64))
        return _Functions(
            opened.get_concrete_function(
                text, text, text, number, tf.TensorSpec([], tf.bool)
            ),
            following.get_concrete_function(number),
            closed.get_concrete_function(number),
        )


class _Reader:
    """An iterator's stream."""

    def __init__(
        self,
        stream: SampleStream,
        batch_size: int,
        drop_remainder: bool,
        nothing: list[np.ndarray],
    ):
        self.stream = stream
        self._batch_size = batch_size
        self._drop_remainder = drop_remainder
        self._nothing = nothing

    def next(self) -> list[np.ndarray]:
        """Returns rows, none if there are none yet.

        Raises:
          StopIteration: If there are no more.
        """
        size = self._batch_size
        try:
            if size:
                batch = self.stream.next_batch(size, timeout=_SLICE)
            else:
                batch = self.stream.next_rows(_MOST_TAKEN_APART, timeout=_SLICE)
        except Exhausted:
            raise StopIteration from None
        except RuntimeError as error:
            # Of which TensorFlow would not know the kind.
            raise ValueError(str(error)) from None
        if batch is None:
            return self._nothing
        if self._drop_remainder and len(batch[0]) < size:
            raise StopIteration
        return batch


_readers: dict[int, _Reader] = {}
_numbers = itertools.count(1)


def _open(
    server_address: bytes,
    table: bytes,
    config: bytes,
    batch_size: Any,
    drop_remainder: Any,
) -> np.int64:
    options = json.loads(config)
    certificates = options.pop("tls_root_certificates")
    specs = [
        specs_json.Leaf(None if shape is None else tuple(shape), dtype, name)
        for shape, dtype, name in options.pop("specs")
    ]
    nothing = [np.zeros(0, dtype) for dtype in INFO_DTYPES]
    for leaf in specs:
        shape = [size or 0 for size in leaf.shape or ()]
        nothing.append(np.zeros((0, *shape), wire.dtype_from_name(leaf.dtype)))
    stream = SampleStream(
        server_address.decode(),
        table.decode(),
        specs=specs,
        reuse_memory=True,
        tls_root_certificates=None if certificates is None else certificates.encode(),
        **options,
    )
    number = next(_numbers)
    _readers[number] = _Reader(stream, int(batch_size), bool(drop_remainder), nothing)
    return np.int64(number)


def _next(number: Any) -> list[np.ndarray]:
    return _readers[int(number)].next()


def _close(number: Any) -> np.int64:
    reader = _readers.pop(int(number), None)
    if reader is not None:
        reader.stream.close()
    return np.int64(0)


@atexit.register
def _close_all() -> None:
    """Ends the waiting of TensorFlow's threads before Python is gone."""
    for reader in list(_readers.values()):
        reader.stream.close()
