"""Records experience in TFRecord files, and reads it as a dataset.

A recording consists of two files. One holds a `tf.train.Example` for each frame. The
other, with ".spec" appended to the name, holds the spec of the frames. The format is
TF-Agents'.
"""

from __future__ import annotations

import mmap
import os
import struct
from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf
from google.protobuf import message

from tfrl.compilation import internals
from tfrl.compilation.python_calls import graph_calls
from tfrl.specs import tensor_spec
from tfrl.trajectories import trajectory
from tfrl.utils import example_encoding, nest_utils

SPEC_FILE_EXTENSION = ".spec"
# A record's header is its length and a checksum; another checksum follows the record.
_HEADER, _FOOTER = struct.Struct("<QI"), 4


def encode_spec_to_file(output_path: str, tensor_data_spec: Any) -> None:
    """Writes a nest of specs to a TFRecord file of one record."""
    with tf.io.TFRecordWriter(output_path) as writer:
        writer.write(tensor_spec.to_proto(tensor_data_spec).SerializeToString())


def parse_encoded_spec_from_file(input_path: str) -> Any:
    """Returns the nest of tensor specs that `encode_spec_to_file` wrote.

    The result equals the nest that was written, including names and bounds, with tensor
    specs instead of array specs. A named tuple becomes a named tuple of the same name
    and fields.

    Raises:
      FileNotFoundError: If there is no such file.
      ValueError: If the file does not hold a spec.
    """
    if not tf.io.gfile.exists(input_path):
        raise FileNotFoundError(
            f"input_path: got {input_path!r}, where there is no file, expected the "
            "spec of a recording; give load_tfrecord_dataset its spec, or write it "
            "with encode_spec_to_file."
        )
    _check_records(input_path)
    try:
        record = next(tf.data.TFRecordDataset(input_path).as_numpy_iterator())
        return tensor_spec.from_proto(internals.structured_value().FromString(record))
    except (
        StopIteration,
        ValueError,
        message.DecodeError,
        tf.errors.DataLossError,
    ) as error:
        raise ValueError(
            f"input_path: got {input_path!r}, whose first record is not a spec "
            f"({error}), expected a file of encode_spec_to_file; write it again."
        ) from error


class TFRecordObserver:
    """An observer for drivers that records every frame in a TFRecord file.

    The file and its spec (`output_path` + ".spec") are created by the constructor and
    replace older ones. Call `close` at the end, or the last frames may be missing.
    """

    def __init__(
        self,
        output_path: str,
        tensor_data_spec: Any,
        py_mode: bool = False,
        compress_image: bool | str = False,
        image_quality: int = 95,
    ):
        """Makes the files.

        Args:
          output_path: The file to write; its folder is created if missing.
          tensor_data_spec: The nest of specs of a frame without batch dimension, such
            as an agent's `collect_data_spec`.
          py_mode: Whether the observer receives nests of arrays without batch
            dimension, as from `PyDriver`. If False, it receives tensors `[1, ...]`,
            eagerly or in a graph.
          compress_image: See `example_encoding.get_example_encoder`.
          image_quality: The JPEG quality, from 0 to 100.

        Raises:
          ValueError: If a spec cannot be encoded.
        """
        self._py_mode = py_mode
        self._array_data_spec = tensor_spec.to_nest_array_spec(tensor_data_spec)
        self._serialize = example_encoding.get_example_serializer(
            self._array_data_spec, compress_image, image_quality
        )
        self.output_path = os.fspath(output_path)
        folder = os.path.dirname(self.output_path)
        if folder:
            tf.io.gfile.makedirs(folder)
        encode_spec_to_file(self.output_path + SPEC_FILE_EXTENSION, tensor_data_spec)
        self._writer = tf.io.TFRecordWriter(self.output_path)
        self._ordered_calls = graph_calls.OrderedCalls()

    def __call__(self, data: Any) -> None:
        """Records a frame; see `py_mode`.

        Raises:
          ValueError: If `data` does not match the spec, or its batch size is not 1.
        """
        if self._py_mode:
            self._writer.write(self._serialize(data))
            return
        nest_utils.assert_same_structure(
            self._array_data_spec,
            data,
            message="The frame to record does not have the structure of its spec",
        )
        tensors = [tf.convert_to_tensor(item) for item in tf.nest.flatten(data)]
        for tensor in tensors:
            if tensor.shape.rank == 0 or tensor.shape[0] not in (1, None):
                raise ValueError(
                    f"data: got a tensor of shape {tensor.shape}, expected a batch of "
                    "1, since a recording is one environment's; give each its own "
                    "file, with BatchedObserverUnbatching and py_mode=True."
                )
        self._ordered_calls(self.write, tensors, [])

    def write(self, *data: Any) -> None:
        """Records a frame given as flat arrays: `[1, ...]`, or `[...]` in `py_mode`."""
        flat = tf.nest.flatten(data)
        if not self._py_mode:
            flat = nest_utils.unbatch_nested_array(flat)
        self._writer.write(
            self._serialize(tf.nest.pack_sequence_as(self._array_data_spec, flat))
        )

    def flush(self) -> None:
        """Writes buffered records to the file."""
        self._writer.flush()

    def close(self) -> None:
        """Flushes and closes the file."""
        self._writer.close()


def load_tfrecord_dataset(
    dataset_files: Sequence[str] | str,
    buffer_size: int | None = 1000,
    as_experience: bool = False,
    as_trajectories: bool = False,
    add_batch_dim: bool = True,
    decoder: Callable[[Any], Any] | None = None,
    num_parallel_reads: int | None = None,
    compress_image: bool | str = False,
    spec: Any = None,
) -> tf.data.Dataset:
    """Returns a dataset of the frames of recordings, in order within each file.

    The call reads the lengths of all records of local files and decodes the first
    record of each file, to detect files that are truncated or of another kind. A bad
    record that is found later raises `tf.errors.InvalidArgumentError`, which names
    file, record and field. A record with a wrong checksum raises
    `tf.errors.DataLossError`, which names only the byte.

    Args:
      dataset_files: The recordings.
      buffer_size: The number of bytes to read ahead; 0 for none.
      as_experience: Whether elements are pairs of consecutive frames of one file, `[2,
        ...]`, and pairs do not overlap: batch them for training with `num_steps` 2,
        `[B, 2, ...]`. An odd last frame is dropped.
      as_trajectories: Whether elements are `Trajectory`s, on which agents train.
      add_batch_dim: Whether elements have a batch dimension, `[1, ...]`; ignored if
        `as_experience`.
      decoder: A function that decodes a record; None makes one from the spec.
      num_parallel_reads: The number of files that are read in turn; None reads all
        files in turn.
      compress_image: Whether pictures were compressed.
      spec: The spec of the frames; None reads the spec file next to each recording.

    Raises:
      FileNotFoundError: If a recording or its spec file is missing.
      ValueError: If there is no file, the specs of the files differ, or a file is
        damaged or does not hold frames of its spec.
    """
    files = [dataset_files] if isinstance(dataset_files, str) else list(dataset_files)
    if not files:
        raise ValueError(
            f"dataset_files: got {dataset_files!r}, expected at least one file; give "
            "the paths that were given to TFRecordObserver."
        )
    for file in files:
        _check_records(file)
    if decoder is None:
        spec = _common_spec(files) if spec is None else spec
        decode = example_encoding.get_example_decoder(
            spec, compress_image=compress_image
        )
        _check_first_records(files, buffer_size, decode)
    else:
        custom_decoder = decoder

        def decode(record: Any, _name: Any) -> Any:
            return custom_decoder(record)

    def frames(file: Any) -> tf.data.Dataset:
        dataset = _named_records(file, buffer_size).map(decode, tf.data.AUTOTUNE)
        if as_experience:
            return dataset.batch(2, drop_remainder=True)
        return (
            dataset.map(nest_utils.batch_nested_tensors) if add_batch_dim else dataset
        )

    dataset = tf.data.Dataset.from_tensor_slices(files)
    reads = num_parallel_reads or len(files)
    dataset = dataset.interleave(
        frames, cycle_length=reads, num_parallel_calls=reads, deterministic=True
    )
    if as_trajectories:
        dataset = dataset.map(lambda *sample: trajectory.Trajectory(*_fields(sample)))
    return dataset


def _fields(sample: tuple[Any, ...]) -> Any:
    """Returns the nest that `map` passed as one argument or as one for each field."""
    return sample[0] if len(sample) == 1 else sample


def _named_records(file: Any, buffer_size: int | None) -> tf.data.Dataset:
    """Pairs each record with its name in errors: the file and the record's number."""
    return (
        tf.data.TFRecordDataset(file, buffer_size=buffer_size)
        .enumerate()
        .map(
            lambda index, record: (
                record,
                tf.strings.join([file, " record ", tf.strings.as_string(index)]),
            )
        )
    )


def _common_spec(files: Sequence[str]) -> Any:
    specs = [parse_encoded_spec_from_file(file + SPEC_FILE_EXTENSION) for file in files]
    for file, spec in zip(files, specs, strict=True):
        if spec != specs[0]:
            raise ValueError(
                f"dataset_files: got {file!r} with the spec {spec} and {files[0]!r} "
                f"with {specs[0]}, expected one spec for all; load them one by one, or "
                "give the spec."
            )
    return specs[0]


def _check_records(file: str) -> None:
    """Raises an error unless a local file is a sequence of whole records."""
    if not tf.io.gfile.exists(file):
        raise FileNotFoundError(
            f"dataset_files: got {file!r}, where there is no file, expected a "
            "recording; give the path that was given to TFRecordObserver."
        )
    if not os.path.isfile(file) or os.path.getsize(file) == 0:
        return
    with (
        open(file, "rb") as opened,
        mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ) as content,
    ):
        start, record, size = 0, 0, len(content)
        while start < size:
            end = start + _HEADER.size + _FOOTER
            if end <= size:
                end += _HEADER.unpack_from(content, start)[0]
            if end > size:
                raise ValueError(
                    f"{file} record {record}: got a file of {size} bytes, expected at "
                    f"least {end} for the record that begins at byte {start}; "
                    + (
                        "the file was cut off, and the records before can be copied "
                        f"with tf.data.TFRecordDataset(file).take({record})."
                        if record
                        else "it is not a TFRecord file, or was cut off: record again."
                    )
                )
            start, record = end, record + 1


def _check_first_records(
    files: Sequence[str], buffer_size: int | None, decode: Callable[..., Any]
) -> None:
    """Raises an error unless the first record of each file can be decoded."""
    with tf.init_scope():
        for file in files:
            try:
                for record in _named_records(file, buffer_size).take(1):
                    decode(*record)
            except (tf.errors.InvalidArgumentError, tf.errors.DataLossError) as error:
                raise ValueError(
                    f"{file} record 0: got {error.message}, expected an example of its "
                    "spec; give the spec and compress_image it was recorded with."
                ) from error
