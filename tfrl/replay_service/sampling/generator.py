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
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from tfrl.replay_service import specs_json
from tfrl.replay_service.sampling.rows import INFO_DTYPES
from tfrl.replay_service.sampling.sampler import Exhausted, SampleStream
from tfrl.replay_service.transport import wire

_SLICE = 0.1  # Seconds that a call waits for the server.
_MOST_TAKEN_APART = 256  # Rows that come at once to be handed out one by one.
_ARGUMENTS = [
    *[tf.TensorSpec([], tf.string)] * 3,
    tf.TensorSpec([], tf.int64),
    tf.TensorSpec([], tf.bool),
]


def batches(specs: Sequence[Any], *arguments: Any) -> Any:
    """Returns the variant tensor of a dataset of batches.

    Each of its iterators has a stream of its own. As all functions in it are shared by
    the datasets with the same specs, nothing is traced for another one.

    Args:
      specs: Of the components of a batch.
      *arguments: Tensors: server address, table, and the other arguments of
        `SampleStream` in JSON, all strings; how many rows a batch has, int64, 0 for as
        many as there are; and whether to leave out a last batch that is smaller.
    """
    return tf.raw_ops.FlatMapDataset(
        input_dataset=tf.raw_ops.TensorDataset(
            components=arguments, output_shapes=[[]] * len(arguments)
        ),
        other_arguments=[],
        # The function hides the generator from tf.data, which cannot optimise it and
        # would warn of that.
        f=_generate(tuple(specs)),
        **_outputs(specs),
    )


def unbatched(variant: Any, specs: Sequence[Any]) -> Any:
    """Returns the variant tensor of a dataset of rows.

    Args:
      variant: The tensor of a dataset of batches.
      specs: Of the components of a row.
    """
    return tf.raw_ops.UnbatchDataset(input_dataset=variant, **_outputs(specs))


def _outputs(specs: Sequence[Any]) -> dict[str, Any]:
    return {
        "output_types": [spec.dtype for spec in specs],
        "output_shapes": [spec.shape for spec in specs],
    }


@functools.cache
def _generate(specs: tuple[Any, ...]) -> Any:
    """Returns a function that makes a dataset from the arguments of its stream."""
    number = tf.TensorSpec([], tf.int64)
    opened = _function(
        lambda *arguments: tf.ensure_shape(
            tf.numpy_function(_open, arguments, tf.int64), []
        ),
        *_ARGUMENTS,
    )
    dtypes = [spec.dtype for spec in specs]
    following = _function(
        lambda reader: tf.numpy_function(_next, [reader], dtypes), number
    )
    closed = _function(
        lambda reader: tf.numpy_function(_close, [reader], tf.int64), number
    )
    # Of an unknown number of rows, or the answer would be known to be yes.
    any_size = [tf.TensorSpec(None, spec.dtype) for spec in specs]
    has_rows = _function(lambda keys, *others: tf.shape(keys)[0] > 0, *any_size)

    def generate(*arguments: Any) -> Any:
        variant = tf.raw_ops.GeneratorDataset(
            init_func_other_args=arguments,
            next_func_other_args=[],
            finalize_func_other_args=[],
            init_func=opened,
            next_func=following,
            finalize_func=closed,
            **_outputs(specs),
        )
        return tf.raw_ops.FilterDataset(
            input_dataset=variant,
            other_arguments=[],
            predicate=has_rows,
            **_outputs(specs),
        )

    return _function(generate, *_ARGUMENTS)


def _function(function: Callable[..., Any], *signature: Any) -> Any:
    with tf.init_scope():
        traced = tf.function(function, autograph=False)
        return traced.get_concrete_function(*signature)


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
    _close_at_exit()
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


@functools.cache
def _close_at_exit() -> None:
    # Now, not when imported: what was there before, such as a server, ends after it.
    atexit.register(_close_all)


def _close_all() -> None:
    """Ends the waiting of TensorFlow's threads before Python is gone."""
    for reader in list(_readers.values()):
        reader.stream.close()
