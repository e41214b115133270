"""The base class of `TrajectoryDataset` and `TimestepDataset`."""

from __future__ import annotations

import json
import numbers
from typing import Any

import tensorflow as tf
import tree
from typing_extensions import override

from tfrl.replay_service.replay_sample import ReplaySample, SampleInfo
from tfrl.replay_service.sampling import generator as sample_generator
from tfrl.replay_service.sampling import interrupts
from tfrl.specs import dtype_names


class SamplingDataset(tf.data.Dataset):
    """Samples of a table, or their time steps, as a `tf.data.Dataset`.

    See `TrajectoryDataset` and `TimestepDataset`, which differ only in `_timesteps`.
    """

    _timesteps = False

    # In a function of tf.data, AutoGraph would convert all functions called here.
    @tf.autograph.experimental.do_not_convert
    def __init__(
        self,
        server_address: Any,
        table: Any,
        dtypes: Any,
        shapes: Any,
        max_in_flight_samples_per_worker: int,
        num_workers_per_iterator: int = -1,
        max_samples_per_stream: int = -1,
        rate_limiter_timeout_ms: int = -1,
        max_samples: int = -1,
        *,
        token: str | None = None,
        tls_root_certificates: bytes | None = None,
        timeout: float = 30.0,
    ):
        """Creates a dataset. Sampling starts with the first call of an iterator.

        Args:
          server_address: "host:port", a string or a string tensor.
          table: The name of the table, a string or a string tensor.
          dtypes: A nest of the data's dtypes.
          shapes: A nest of the data's `tf.TensorShape`s, in the structure of `dtypes`.
            Dimensions may be unknown.
          max_in_flight_samples_per_worker: The maximum number of samples that the
            server draws ahead of their use. A larger number is faster, up to two or
            three batches, but the samples are older when they are used.
          num_workers_per_iterator: Multiplies `max_in_flight_samples_per_worker`; -1
            stands for 1. Samples always arrive in the order in which they are drawn.
          max_samples_per_stream: The maximum number of samples in one request; -1 for
            no limit.
          rate_limiter_timeout_ms: The dataset ends after waiting this many milliseconds
            for the table's rate limiter; -1 for no limit.
          max_samples: The number of items after which the dataset ends; -1 for no end.
          token: The server's token, if it has one; by default the environment variable
            TFRL_REPLAY_TOKEN.
          tls_root_certificates: The root certificates that verify the server's
            certificate; see `connection.connect`.
          timeout: The number of seconds to keep trying to reach a server.

        Raises:
          ValueError: If `dtypes` and `shapes` are different nests, or a number is out
            of range.
        """
        tree.assert_same_structure(dtypes, shapes, check_types=False)
        _check_positive(
            "max_in_flight_samples_per_worker", max_in_flight_samples_per_worker
        )
        _check_positive("num_workers_per_iterator", num_workers_per_iterator, -1)
        _check_positive("max_samples_per_stream", max_samples_per_stream, -1)
        if rate_limiter_timeout_ms < -1 or not _is_integer(rate_limiter_timeout_ms):
            raise ValueError(
                f"rate_limiter_timeout_ms ({rate_limiter_timeout_ms}) must be an "
                "integer >= -1"
            )
        _check_positive("max_samples", max_samples, -1)
        data = tree.map_structure(
            tf.TensorSpec,
            tree.map_structure(tf.TensorShape, without_lists(shapes)),
            without_lists(dtypes),
        )
        info = tree.map_structure(
            tf.TensorSpec, SampleInfo.tf_shapes(), SampleInfo.tf_dtypes()
        )
        self._element_spec = ReplaySample(info=info, data=data)
        workers = max(num_workers_per_iterator, 1)
        self._config = {
            "specs": _encode_specs(data),
            "max_in_flight": max_in_flight_samples_per_worker * workers,
            "timeout_ms": rate_limiter_timeout_ms,
            "max_samples": max_samples,
            "max_samples_per_stream": max_samples_per_stream,
            "timesteps": self._timesteps,
            "token": token,
            "tls_root_certificates": None
            if tls_root_certificates is None
            else tls_root_certificates.decode(),
            "timeout": timeout,
        }
        self._server_address = server_address
        self._table = table
        interrupts.WATCH.start()
        self._pipeline = self._rows()
        super().__init__(tf.data.experimental.to_variant(self._pipeline))

    @classmethod
    @tf.autograph.experimental.do_not_convert
    def from_table_signature(
        cls,
        server_address: str,
        table: str,
        max_in_flight_samples_per_worker: int,
        num_workers_per_iterator: int = -1,
        max_samples_per_stream: int = -1,
        rate_limiter_timeout_ms: int = -1,
        get_signature_timeout_secs: int | None = None,
        max_samples: int = -1,
        *,
        token: str | None = None,
        tls_root_certificates: bytes | None = None,
        timeout: float = 30.0,
    ) -> Any:
        """Creates a dataset with the dtypes and shapes of a table's signature.

        Args:
          server_address: See the constructor.
          table: The name of the table, a string.
          max_in_flight_samples_per_worker: See the constructor.
          num_workers_per_iterator: See the constructor.
          max_samples_per_stream: See the constructor.
          rate_limiter_timeout_ms: See the constructor.
          get_signature_timeout_secs: The number of seconds to wait for the server's
            answer; by default there is no limit once the server has been reached.
          max_samples: See the constructor.
          token: See the constructor.
          tls_root_certificates: See the constructor.
          timeout: See the constructor.

        Raises:
          ValueError: If there is no such table, it has no signature, or a number is out
            of range.
          DeadlineExceededError: If `get_signature_timeout_secs` pass without an answer.
          ReplayUnavailable: If no server answers.
        """
        from tfrl.replay_service.client import Client

        access: dict[str, Any] = {
            "token": token,
            "tls_root_certificates": tls_root_certificates,
            "timeout": timeout,
        }
        info = Client(server_address, **access).server_info(get_signature_timeout_secs)
        if table not in info:
            raise ValueError(
                f"Server at {server_address} does not contain any table named "
                f"{table}. Found: {', '.join(sorted(info))}."
            )
        signature = info[table].signature
        if not signature:
            raise ValueError(
                f"Table {table} at {server_address} does not have a signature."
            )
        return cls(
            server_address=server_address,
            table=table,
            dtypes=tree.map_structure(lambda spec: spec.dtype, signature),
            shapes=tree.map_structure(lambda spec: spec.shape, signature),
            max_in_flight_samples_per_worker=max_in_flight_samples_per_worker,
            num_workers_per_iterator=num_workers_per_iterator,
            max_samples_per_stream=max_samples_per_stream,
            rate_limiter_timeout_ms=rate_limiter_timeout_ms,
            max_samples=max_samples,
            **access,
        )

    @tf.autograph.experimental.do_not_convert
    @override
    def batch(
        self,
        batch_size: Any,
        drop_remainder: Any = False,
        num_parallel_calls: Any = None,
        deterministic: bool | None = None,
        name: str | None = None,
    ) -> tf.data.Dataset:
        """Returns a dataset of batches, which never exist as single rows.

        Args:
          batch_size: The number of elements per batch.
          drop_remainder: Whether to drop a smaller last batch.
          num_parallel_calls: Has no effect.
          deterministic: Has no effect.
          name: Has no effect.

        Raises:
          tf.errors.InvalidArgumentError: If `batch_size` is below 1. The iterator
            raises this error if elements have different shapes.
        """
        static_size = tf.get_static_value(batch_size)
        if static_size is not None and static_size < 1:
            raise tf.errors.InvalidArgumentError(
                None, None, "Batch size must be greater than zero."
            )
        drops = bool(tf.get_static_value(drop_remainder))
        spec = self._batch_spec(static_size if drops else None)
        return from_variant(self._batches(spec, batch_size, drop_remainder), spec)

    @property
    def element_spec(self) -> Any:
        """A `ReplaySample` of specs."""
        return self._element_spec

    def _inputs(self) -> list[Any]:
        return [self._pipeline]

    def _rows(self) -> tf.data.Dataset:
        """Returns a dataset of single elements, taken from batches of variable size."""
        batches = self._batches(self._batch_spec(None), 0, False)
        leaves = tf.nest.flatten(self._element_spec)
        variant = sample_generator.unbatched(batches, leaves)
        return from_variant(variant, self._element_spec)

    def _batches(self, spec: Any, batch_size: Any, drop_remainder: Any) -> Any:
        """Returns the variant tensor of a dataset of batches."""
        return sample_generator.batches(
            tf.nest.flatten(spec),
            tf.convert_to_tensor(self._server_address, tf.string),
            tf.convert_to_tensor(self._table, tf.string),
            tf.constant(json.dumps(self._config)),
            tf.cast(batch_size, tf.int64),
            tf.cast(drop_remainder, tf.bool),
        )

    def _batch_spec(self, size: int | None) -> Any:
        return tf.nest.map_structure(
            lambda leaf: tf.TensorSpec(
                tf.TensorShape([size]).concatenate(leaf.shape), leaf.dtype
            ),
            self._element_spec,
        )


def from_variant(variant: Any, spec: Any) -> tf.data.Dataset:
    """Returns the dataset of a variant tensor. It must not draw samples ahead.

    Args:
      variant: The variant tensor of a dataset with the components of `spec`.
      spec: The nest of specs of an element.
    """
    options = tf.data.Options()
    # Autotuning could draw further ahead than requested. Its thread may also miss that
    # an iterator is deleted, and then delay the deletion by up to a minute.
    options.autotune.enabled = False
    options.experimental_optimization.inject_prefetch = False
    options.experimental_optimization.map_parallelization = False
    return tf.data.experimental.from_variant(variant, spec).with_options(options)


def _check_positive(name: str, value: int, other: int | None = None) -> None:
    if not _is_integer(value) or (value < 1 and value != other):
        alternative = "" if other is None else f" or {other}"
        raise ValueError(f"{name} ({value}) must be a positive integer{alternative}")


def _is_integer(value: Any) -> bool:
    return isinstance(value, numbers.Integral)


def without_lists(nest: Any) -> Any:
    """Replaces lists by tuples, because tf.data converts lists to tensors."""
    return tree.traverse(
        lambda part: tuple(part) if isinstance(part, list) else None, nest, False
    )


def _encode_specs(nest: Any) -> list[Any]:
    return [
        (
            None if spec.shape.rank is None else spec.shape.as_list(),
            dtype_names.dtype_name(spec.dtype.as_numpy_dtype),
            "/".join(map(str, path)),
        )
        for path, spec in tree.flatten_with_path(nest)
    ]
