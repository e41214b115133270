"""Creates `tf.data` datasets of batches that call Python once per batch.

Each call waits for the server only for a short time. If no samples arrive, the inner
dataset ends, and an outer dataset creates the next one unless the stream has ended. So
the pipeline notices the deletion of its iterator even while a rate limiter holds back
samples.
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

from tfrl.replay_service import errors
from tfrl.replay_service.sampling import interrupts
from tfrl.replay_service.sampling.sampler import Exhausted, SampleStream
from tfrl.specs import spec_json

_SLICE = 0.1  # Maximum seconds that a call waits for the server.
_MOST_TAKEN_APART = (
    256  # Maximum number of rows that are fetched together and yielded one by one.
)
# The last error of the service in a pipeline, by the server's address, because
# TensorFlow reports it as an UnknownError.
failures: dict[str, errors.ReverbError] = {}

_ARGUMENTS = [
    *[tf.TensorSpec([], tf.string)] * 3,
    tf.TensorSpec([], tf.int64),
    tf.TensorSpec([], tf.bool),
]


def batches(specs: Sequence[Any], *arguments: Any) -> Any:
    """Returns the variant tensor of a dataset of batches.

    Each iterator has its own stream. Datasets with the same specs share all functions,
    so another dataset needs no tracing.

    Args:
      specs: The specs of the components of a batch.
      *arguments: Five scalar tensors: the server's address (string), the table's name
        (string), the other arguments of `SampleStream` as JSON (string), the number of
        rows per batch, or 0 for a variable number (int64), and whether to drop a
        smaller last batch (bool). For another kind of stream, the JSON is
        `{"opener": number}` with the result of `register`.
    """
    return tf.raw_ops.FlatMapDataset(
        input_dataset=tf.raw_ops.TensorDataset(
            components=arguments, output_shapes=[[]] * len(arguments)
        ),
        other_arguments=[],
        # The function hides the generator from tf.data, which would warn that it cannot
        # optimise it.
        f=_generate(tuple(specs)),
        **_outputs(specs),
    )


def register(open_stream: Callable[[], Any]) -> int:
    """Registers a kind of stream; returns the number by which datasets refer to it.

    Args:
      open_stream: Opens a stream for each iterator: an object with the methods
        `next_batch` and `close` of a `SampleStream`. The function is never released.
    """
    number = next(_numbers)
    _openers[number] = open_stream
    return number


def unbatched(variant: Any, specs: Sequence[Any]) -> Any:
    """Returns the variant tensor of a dataset of rows.

    Args:
      variant: The variant tensor of a dataset of batches.
      specs: The specs of the components of a row.
    """
    return tf.raw_ops.UnbatchDataset(input_dataset=variant, **_outputs(specs))


def _outputs(specs: Sequence[Any]) -> dict[str, Any]:
    return {
        "output_types": [spec.dtype for spec in specs],
        "output_shapes": [spec.shape for spec in specs],
    }


@functools.cache
def _generate(specs: tuple[Any, ...]) -> Any:
    """Returns a function that creates a dataset from the arguments of `batches`."""
    number = tf.TensorSpec([], tf.int64)
    opened = _function(
        lambda *arguments: tf.ensure_shape(
            tf.numpy_function(_open, arguments, tf.int64), []
        ),
        *_ARGUMENTS,
    )
    goes_on = _function(
        lambda reader: tf.ensure_shape(
            tf.numpy_function(_goes_on, [reader], tf.int64), []
        ),
        number,
    )
    closed = _function(
        lambda reader: tf.numpy_function(_close, [reader], tf.int64), number
    )
    dtypes = [spec.dtype for spec in specs]
    following = _function(
        lambda reader: tf.numpy_function(_next, [reader], dtypes), number
    )

    def follow(reader: Any) -> Any:
        readers = tf.raw_ops.RepeatDataset(
            input_dataset=tf.raw_ops.TensorDataset(
                components=[reader], output_shapes=[[]]
            ),
            count=tf.constant(-1, tf.int64),
            **_outputs([number]),
        )
        return tf.raw_ops.MapDataset(
            input_dataset=readers,
            other_arguments=[],
            f=following,
            # This runs in the calling thread, because switching threads takes longer.
            use_inter_op_parallelism=False,
            # The dataset may end.
            preserve_cardinality=False,
            **_outputs(specs),
        )

    def generate(*arguments: Any) -> Any:
        readers = tf.raw_ops.GeneratorDataset(
            init_func_other_args=arguments,
            next_func_other_args=[],
            finalize_func_other_args=[],
            init_func=opened,
            next_func=goes_on,
            finalize_func=closed,
            **_outputs([number]),
        )
        return tf.raw_ops.FlatMapDataset(
            input_dataset=readers,
            other_arguments=[],
            f=_function(follow, number),
            **_outputs(specs),
        )

    return _function(generate, *_ARGUMENTS)


def _function(function: Callable[..., Any], *signature: Any) -> Any:
    with tf.init_scope():
        traced = tf.function(function, autograph=False)
        return traced.get_concrete_function(*signature)


class _Reader:
    """Reads the stream of one iterator."""

    def __init__(
        self, address: str, stream: Any, batch_size: int, drop_remainder: bool
    ):
        self.stream = stream
        self._address = address
        self.has_ended = False
        self._batch_size = batch_size
        self._drop_remainder = drop_remainder
        self._interrupt = 0  # The number of the last interrupt that ended a wait.

    def next(self) -> list[np.ndarray]:
        """Returns the next rows.

        Raises:
          StopIteration: If no rows have arrived in time, or the stream has ended.
          Interrupted: If the main thread waits for these rows and was interrupted.
        """
        size = self._batch_size
        try:
            if size:
                batch = self.stream.next_batch(size, timeout=_SLICE)
            else:
                batch = self.stream.next_rows(_MOST_TAKEN_APART, timeout=_SLICE)
        except Exhausted:
            self.has_ended = True
            raise StopIteration from None
        except errors.ReverbError as error:
            failures[self._address] = type(error)(str(error))
            # TensorFlow would show the whole chain of causes.
            raise failures[self._address] from None
        except RuntimeError as error:
            # TensorFlow would report this type of error as an UnknownError.
            raise ValueError(str(error)) from None
        if batch is None:
            self._check_interrupt()
            raise StopIteration
        if self._drop_remainder and len(batch[0]) < size:
            self.has_ended = True
            raise StopIteration
        return batch

    def _check_interrupt(self) -> None:
        number = interrupts.WATCH.interrupt()
        if number not in (0, self._interrupt):
            self._interrupt = number
            raise interrupts.Interrupted("Waiting for samples was interrupted.")


_readers: dict[int, _Reader] = {}
_openers: dict[int, Callable[[], Any]] = {}
_numbers = itertools.count(1)


def _open(
    server_address: bytes,
    table: bytes,
    config: bytes,
    batch_size: Any,
    drop_remainder: Any,
) -> np.int64:
    options = json.loads(config)
    if "opener" in options:
        stream = _openers[options["opener"]]()
    else:
        stream = _open_stream(server_address.decode(), table.decode(), options)
    _close_at_exit()
    number = next(_numbers)
    _readers[number] = _Reader(
        server_address.decode(), stream, int(batch_size), bool(drop_remainder)
    )
    return np.int64(number)


def _open_stream(address: str, table: str, options: dict[str, Any]) -> SampleStream:
    certificates = options.pop("tls_root_certificates")
    specs = [
        spec_json.Leaf(None if shape is None else tuple(shape), dtype, name)
        for shape, dtype, name in options.pop("specs")
    ]
    return SampleStream(
        address,
        table,
        specs=specs,
        reuse_memory=True,
        tls_root_certificates=None if certificates is None else certificates.encode(),
        **options,
    )


def _goes_on(number: Any) -> np.int64:
    """Returns `number`; raises StopIteration if its reader has no more rows."""
    if _readers[int(number)].has_ended:
        raise StopIteration
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
    # This is registered late, so that it runs before a server's own handler.
    atexit.register(_close_all)


def _close_all() -> None:
    """Closes all streams, so that no thread of TensorFlow waits for one at exit."""
    for reader in list(_readers.values()):
        reader.stream.close()
