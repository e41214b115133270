"""Makes datasets of sequences from a replay server, whole or in pieces."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import tensorflow as tf
import tree

from tfrl import replay_service
from tfrl.replay_service.sampling import generator
from tfrl.specs import matching


def make_reverb_dataset(
    server_address: str,
    table: str,
    data_spec: Any,
    max_in_flight_samples_per_worker: int = 10,
    batch_size: int | None = None,
    prefetch_size: int | None = None,
    sequence_length: int | None = None,
    cycle_length: int | None = None,
    num_parallel_calls: int | None = None,
    per_sequence_fn: Callable[[Any], Any] | None = None,
    dataset_transformation: Callable[[tf.data.Dataset], tf.data.Dataset] | None = None,
    num_workers_per_iterator: int = -1,
    max_samples_per_stream: int = -1,
    rate_limiter_timeout_ms: int = -1,
) -> tf.data.Dataset:
    """Makes a dataset of the items of a table.

    With one stream and without functions of the caller, batches come from the server
    unchanged.

    Args:
      server_address: The server's address, as "host:port".
      table: The table's name.
      data_spec: A nest of specs of one frame, without batch and time.
      max_in_flight_samples_per_worker: The number of items to request ahead of their
        use.
      batch_size: The number of sequences in an element (`B`); None for no batch
        dimension. An incomplete last batch is dropped.
      prefetch_size: The number of elements that are made ahead of their use.
      sequence_length: The number of frames of every item (`T`); None if the number
        varies.
      cycle_length: The number of streams from which sequences are taken in turn; None
        for one.
      num_parallel_calls: The number of streams that are read, or calls of functions
        that run, at a time.
      per_sequence_fn: Applied to the `ReplaySample` of each sequence.
      dataset_transformation: Applied to the dataset of each stream.
      num_workers_per_iterator: See `replay_service.TrajectoryDataset`.
      max_samples_per_stream: See `replay_service.TrajectoryDataset`.
      rate_limiter_timeout_ms: See `replay_service.TrajectoryDataset`.

    Returns:
      A dataset of `ReplaySample(info, data)`, or the output of the functions: data
      `[B, T, ...]` and infos repeated for each frame, `[B, T]`.
    """

    def make_stream() -> tf.data.Dataset:
        return whole_sequences(
            server_address,
            table,
            data_spec,
            sequence_length,
            max_in_flight_samples_per_worker=max_in_flight_samples_per_worker,
            num_workers_per_iterator=num_workers_per_iterator,
            max_samples_per_stream=max_samples_per_stream,
            rate_limiter_timeout_ms=rate_limiter_timeout_ms,
        )

    def make_transformed(_: Any = None) -> tf.data.Dataset:
        dataset = make_stream().map(lambda sample: repeat_info(sample, axis=0))
        if per_sequence_fn is not None:
            dataset = dataset.map(per_sequence_fn, num_parallel_calls)
        if dataset_transformation is not None:
            dataset = dataset_transformation(dataset)
        return dataset

    has_functions = per_sequence_fn is not None or dataset_transformation is not None
    if cycle_length not in (None, 1):
        dataset = tf.data.Dataset.range(cycle_length).interleave(
            make_transformed,
            cycle_length=cycle_length,
            num_parallel_calls=num_parallel_calls or tf.data.AUTOTUNE,
            # Elements come from any stream that has one.
            deterministic=False,
        )
    elif has_functions or batch_size is None:
        dataset = make_transformed()
    else:
        dataset = make_stream().batch(batch_size, drop_remainder=True)
        dataset = dataset.map(lambda sample: repeat_info(sample, axis=1))
        batch_size = None
    dataset = in_batches(dataset, batch_size)
    return dataset.prefetch(prefetch_size) if prefetch_size else dataset


@tf.autograph.experimental.do_not_convert
def whole_sequences(
    server_address: str,
    table: str,
    data_spec: Any,
    sequence_length: int | None,
    **options: Any,
) -> tf.data.Dataset:
    """Returns a dataset of a table's items, as frames of `data_spec`.

    Args:
      server_address: The server's address.
      table: The table's name.
      data_spec: A nest of specs of one frame, without batch and time.
      sequence_length: The number of frames of every item (`T`); None if the number
        varies.
      **options: Further arguments of `replay_service.TrajectoryDataset`.

    Returns:
      A `TrajectoryDataset` of `ReplaySample`s whose data are `[T, ...]`.
    """
    return replay_service.TrajectoryDataset(
        server_address,
        table,
        tf.nest.map_structure(lambda s: tf.as_dtype(s.dtype), data_spec),
        tf.nest.map_structure(
            lambda s: tf.TensorShape([sequence_length, *s.shape]), data_spec
        ),
        **options,
    )


def take_failure(server_address: str) -> replay_service.ReverbError | None:
    """Returns and forgets the last error that a dataset of this server has raised."""
    return generator.failures.pop(server_address, None)


@contextlib.contextmanager
def reraised(take: Callable[[], Exception | None]) -> Iterator[None]:
    """Raises the service's own exception instead of a `tf.errors.OpError`.

    Args:
      take: Returns and forgets the service's last exception; None without one.
    """
    take()
    try:
        yield
    except tf.errors.OpError:
        failure = take()
        if failure is None:
            raise
        raise failure from None


def check_signature(
    signature: Any, data_spec: Any, sequence_length: int | None, table_name: str
) -> None:
    """Raises a ValueError if items of a table are not sequences of `data_spec`.

    Args:
      signature: The table's signature, a nest of specs, or None.
      data_spec: A nest of specs of one frame, without batch and time.
      sequence_length: The number of frames that an item must have; None if the number
        varies.
      table_name: The table's name, for the error.
    """
    if signature is None:
        return
    found = tf.nest.flatten(signature)
    expected = tree.flatten_with_path(data_spec)
    where = f"data_spec: the signature of table {table_name!r}"
    remedy = (
        "make the table with tensor_spec.add_outer_dim(data_spec, sequence_length), or "
        "give the buffer the specs of the table's items"
    )
    if len(found) != len(expected):
        raise ValueError(
            f"{where}: got {len(found)} tensors, expected {len(expected)}; {remedy}."
        )
    for given, (path, spec) in zip(found, expected, strict=True):
        place = matching.join(where, *path)
        matching.check(place, given, spec, (sequence_length,), remedy=remedy)


@tf.autograph.experimental.do_not_convert
def repeat_info(
    sample: replay_service.ReplaySample, axis: int
) -> replay_service.ReplaySample:
    """Repeats the info of each sequence for each frame along dimension `axis`.

    With axis 0, data `[T, ...]` get infos `[T]`; with axis 1, data `[B, T, ...]` get
    infos `[B, T]`.
    """
    frames = tf.nest.flatten(sample.data)[0]
    static = frames.shape[: axis + 1]
    # There are few operations here, because they are traced for every dataset.
    shape = static if static.is_fully_defined() else tf.shape(frames)[: axis + 1]
    info = tf.nest.map_structure(
        lambda leaf: tf.broadcast_to(tf.expand_dims(leaf, -1), shape), sample.info
    )
    return replay_service.ReplaySample(info, sample.data)


@tf.autograph.experimental.do_not_convert
def batches(
    sequences: tf.data.Dataset, batch_size: int | None, drop_remainder: bool = True
) -> tf.data.Dataset:
    """Returns batches of whole sequences, as `(data, info)`.

    Args:
      sequences: The result of `whole_sequences`.
      batch_size: The number of sequences in an element (`B`); None for no batch
        dimension.
      drop_remainder: Whether to drop an incomplete last batch.

    Returns:
      A dataset of `(data, info)`, `[B, T, ...]` and `[B, T]`.
    """
    axis = 0
    if batch_size is not None:
        sequences, axis = sequences.batch(batch_size, drop_remainder=drop_remainder), 1

    # AutoGraph would convert all functions called here, at every start.
    @tf.autograph.experimental.do_not_convert
    def data_and_info(sample: replay_service.ReplaySample) -> tuple[Any, Any]:
        info, data = repeat_info(sample, axis)
        return data, info

    return sequences.map(data_and_info)


def preprocessed(
    sequences: tf.data.Dataset,
    sequence_preprocess_fn: Callable[[Any], Any] | None,
    num_parallel_calls: int | None,
) -> tf.data.Dataset:
    """Returns sequences one by one, as `(data, info)`, `[T, ...]` and `[T]`.

    Args:
      sequences: The result of `whole_sequences`.
      sequence_preprocess_fn: Applied to the data; None does nothing.
      num_parallel_calls: The number of calls of the function that run in parallel.
    """
    dataset = batches(sequences, None)
    if sequence_preprocess_fn is None:
        return dataset
    preprocess = sequence_preprocess_fn
    return dataset.map(lambda data, info: (preprocess(data), info), num_parallel_calls)


@tf.autograph.experimental.do_not_convert
def in_batches(dataset: tf.data.Dataset, batch_size: int | None) -> tf.data.Dataset:
    """Returns full batches of `batch_size`; None does not change the elements."""
    if batch_size is None:
        return dataset
    return dataset.batch(batch_size, drop_remainder=True)


@tf.autograph.experimental.do_not_convert
def truncate_reshape_rows_by_num_steps(sample: Any, num_steps: int) -> Any:
    """Cuts sequences into pieces and drops the remainder.

    Args:
      sample: A nest of tensors `[T, ...]`.
      num_steps: The number of frames in a piece (`n`).

    Returns:
      The nest with tensors `[T // n, n, ...]`.
    """
    return _pieces(sample, num_steps, axis=0)


@tf.autograph.experimental.do_not_convert
def mixed_pieces(
    sequences: tf.data.Dataset, num_steps: int, batch_size: int | None
) -> tf.data.Dataset:
    """Cuts batches of sequences of equal length into pieces, and shuffles the pieces.

    All pieces of a batch of sequences are put in random order and then divided into
    batches of pieces. So the pieces of one batch come from about as many sequences as
    the batch has pieces.

    Args:
      sequences: A dataset of nests `[P, T, ...]`, for any number `P` of sequences.
      num_steps: The number of frames in a piece (`n`).
      batch_size: The number of pieces in an element (`B`); None for no batch dimension.

    Returns:
      A dataset of nests `[B, n, ...]`.
    """

    @tf.autograph.experimental.do_not_convert
    def cut(*sequences: Any) -> Any:
        pieces = _pieces(sequences, num_steps, axis=1)
        first = tf.nest.flatten(pieces)[0]
        per_sequence = first.shape[1]
        order = tf.random.shuffle(tf.range(tf.shape(first)[0] * per_sequence))
        size = batch_size or 1
        order = order[: tf.size(order) // size * size]
        shape = [-1] if batch_size is None else [-1, batch_size]

        def arrange(leaf: tf.Tensor) -> tf.Tensor:
            rows = tf.reshape(leaf, [-1, *leaf.shape[2:]])
            return tf.gather(rows, tf.reshape(order, shape))

        return tf.nest.map_structure(arrange, pieces)

    return sequences.map(cut).unbatch()


@tf.autograph.experimental.do_not_convert
def pieces_in_order(sequences: tf.data.Dataset, num_steps: int) -> tf.data.Dataset:
    """Cuts each sequence `[T, ...]` of a dataset into pieces `[n, ...]`, in order."""
    return sequences.map(
        lambda *nest: truncate_reshape_rows_by_num_steps(nest, num_steps)
    ).unbatch()


def _pieces(nest: Any, num_steps: int, axis: int) -> Any:
    """Divides dimension `axis` (0 or 1) into pieces of `num_steps`."""
    first = tf.nest.flatten(nest)[0]
    static = first.shape[axis]
    length = tf.shape(first)[axis] if static is None else static
    number = length // num_steps
    keep = [slice(None)] * axis + [slice(number * num_steps)]

    def divide(leaf: tf.Tensor) -> tf.Tensor:
        outer, inner = leaf.shape[:axis], leaf.shape[axis + 1 :]
        shape = tf.concat(
            [tf.shape(leaf)[:axis], [number, num_steps], tf.shape(leaf)[axis + 1 :]], 0
        )
        pieces = tf.reshape(leaf[tuple(keep)], shape)
        known = None if static is None else number
        pieces.set_shape([*outer, known, num_steps, *inner])
        return pieces

    return tf.nest.map_structure(divide, nest)
