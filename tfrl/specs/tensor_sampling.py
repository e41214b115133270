"""Makes random tensors and zero tensors for specs.

Samples are pure functions of a stateless seed: equal seeds give equal samples, in eager
mode and in graphs. Without a seed, a random seed is drawn, which depends on
`tf.random.set_seed`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf

from tfrl.specs.bounded_tensor_spec import BoundedTensorSpec

# The algorithm is given, because the default is several times slower under XLA on a
# CPU.
_ALGORITHM = "philox"
# The largest number of entries in a sampled sparse tensor.
_NUM_SPARSE_VALUES = 7


def sample_bounded_spec(spec: Any, seed: Any = None, outer_dims: Any = None) -> Any:
    """Draws a tensor uniformly from a bounded spec of numbers or booleans.

    Integer samples include both bounds, even if the bounds span the whole range of the
    dtype. Floating samples are finite.

    Args:
      spec: A `BoundedTensorSpec`, or a spec with the same properties.
      seed: An integer, or an integer tensor of shape `[2]`; None draws a seed.
      outer_dims: Dimensions, a sequence or tensor, to put before the spec's shape.

    Returns:
      A tensor of shape `outer_dims + spec.shape` and the spec's dtype.
    """
    dtype = tf.as_dtype(spec.dtype)
    shape = _full_shape(spec, outer_dims)
    seed = _as_seed(seed)
    if dtype.is_floating:
        return _sample_floats(spec, dtype, shape, seed)
    if dtype == tf.bool:
        bits = BoundedTensorSpec(
            spec.shape, tf.int32, spec.minimum.astype(int), spec.maximum.astype(int)
        )
        return tf.cast(_sample_integers(bits, tf.int32, shape, seed), tf.bool)
    return _sample_integers(spec, dtype, shape, seed)


def sample_spec_nest(
    structure: Any,
    seed: Any = None,
    outer_dims: Any = (),
    minimum: Any = None,
    maximum: Any = None,
) -> Any:
    """Draws a nest of tensors for a nest of tensor specs.

    Numbers without bounds are drawn from the whole range of their dtype. Strings are
    small numbers as text. Sparse tensors have up to seven values.

    Args:
      structure: A nest of tensor specs.
      seed: An integer, or an integer tensor of shape `[2]`; None draws a seed. A
        `np.random.RandomState` draws the seed itself. The tensors of the nest have
        different seeds, which are derived from this one.
      outer_dims: Dimensions, a sequence or tensor, to put before each spec's shape.
      minimum: If given, no number is sampled below it.
      maximum: If given, no number is sampled above it.

    Raises:
      TypeError: If there is a spec of another kind.
      NotImplementedError: If there is a sparse spec, and `outer_dims` are not known
        statically.
    """
    seed = _as_seed(seed)

    def sample(index: int, spec: Any) -> Any:
        leaf_seed = tf.random.fold_in(seed, index, alg=_ALGORITHM)
        if isinstance(spec, tf.SparseTensorSpec):
            return _sample_sparse(spec, leaf_seed, outer_dims)
        if not isinstance(spec, tf.TensorSpec):
            raise TypeError(
                f"structure: spec type not supported: {spec!r} of type "
                f"{type(spec).__name__}, expected a nest of TensorSpecs; convert array "
                "specs with tensor_spec.from_spec."
            )
        if spec.dtype == tf.string:
            numbers = BoundedTensorSpec(spec.shape, tf.int32, 0, 10)
            return tf.as_string(sample_bounded_spec(numbers, leaf_seed, outer_dims))
        bounded = _restrict(BoundedTensorSpec.from_spec(spec), minimum, maximum)
        return sample_bounded_spec(bounded, leaf_seed, outer_dims)

    leaves = tf.nest.flatten(structure)
    return tf.nest.pack_sequence_as(
        structure, [sample(index, spec) for index, spec in enumerate(leaves)]
    )


def zero_spec_nest(specs: Any, outer_dims: Any = None) -> Any:
    """Returns a nest of zeros (empty strings, False) for a nest of tensor specs.

    Args:
      specs: A nest of dense tensor specs.
      outer_dims: Dimensions, a sequence or tensor, to put before each spec's shape.

    Raises:
      NotImplementedError: If a spec is not the spec of a dense tensor.
    """

    def make_zeros(spec: Any) -> tf.Tensor:
        if not isinstance(spec, tf.TensorSpec):
            raise NotImplementedError(
                f"specs: spec type not supported: {spec!r} of type "
                f"{type(spec).__name__}, expected a nest of TensorSpecs; convert array "
                "specs with tensor_spec.from_spec."
            )
        return tf.zeros(_full_shape(spec, outer_dims), spec.dtype)

    return tf.nest.map_structure(make_zeros, specs)


def _full_shape(spec: Any, outer_dims: Any) -> Any:
    """Returns `outer_dims + spec.shape` as a static shape if possible, or a tensor."""
    inner = tf.TensorShape(spec.shape)
    if not inner.is_fully_defined():
        raise ValueError(
            f"spec: got shape {inner} of {spec}, expected one without unknown "
            "dimensions; give those as outer_dims, and the spec without them."
        )
    if outer_dims is None:
        return inner
    if tf.is_tensor(outer_dims):
        return tf.concat([tf.cast(outer_dims, tf.int32), inner.as_list()], axis=0)
    # A mixture of numbers and scalar tensors is fine, and numbers stay static.
    if any(tf.is_tensor(dim) for dim in outer_dims):
        return tf.stack([*outer_dims, *inner.as_list()])
    return tf.TensorShape(outer_dims).concatenate(inner)


def _as_seed(seed: Any) -> tf.Tensor:
    """Returns a stateless seed of shape [2]; None draws a seed."""
    if seed is None:
        return tf.random.uniform([2], maxval=tf.int64.max, dtype=tf.int64)
    if isinstance(seed, np.random.RandomState):
        return tf.constant(seed.randint(2**31, size=2), tf.int64)
    seed = tf.convert_to_tensor(seed)
    return tf.stack([seed, tf.zeros_like(seed)]) if seed.shape.rank == 0 else seed


def _sample_floats(spec: Any, dtype: tf.DType, shape: Any, seed: tf.Tensor) -> Any:
    # Half-precision types have too few distinct values in [0, 1) to sample with them.
    compute = tf.float64 if dtype == tf.float64 else tf.float32
    low = tf.constant(spec.minimum.astype(compute.as_numpy_dtype))
    high = tf.constant(spec.maximum.astype(compute.as_numpy_dtype))
    uniform = _unit_interval(shape, compute, seed)
    # Unlike low + (high - low) * uniform, this cannot overflow.
    sample = low * (1 - uniform) + high * uniform
    return tf.cast(tf.clip_by_value(sample, low, high), dtype)


def _unit_interval(shape: Any, dtype: tf.DType, seed: tf.Tensor) -> tf.Tensor:
    """Returns the numbers of `tf.random.stateless_uniform`, computed from random words.

    From the same words, XLA and vectorised maps make different floats than TensorFlow's
    kernel, which takes the low bits.
    """
    if dtype == tf.float64:
        shape = tf.concat([tf.convert_to_tensor(shape, tf.int32), [2]], axis=0)
    words = tf.random.stateless_uniform(
        shape, seed, minval=None, maxval=None, dtype=tf.uint32, alg=_ALGORITHM
    )
    if dtype == tf.float32:
        return tf.cast(tf.cast(words & 0x7FFFFF, tf.int32), tf.float32) * 2.0**-23
    # The bits of a double in [1, 2).
    low, high = words[..., 1], (words[..., 0] & 0xFFFFF) | 0x3FF00000
    doubles = tf.bitcast(tf.stack([low, high], axis=-1), tf.float64)
    return doubles - tf.constant(1.0, tf.float64)


def _sample_integers(spec: Any, dtype: tf.DType, shape: Any, seed: tf.Tensor) -> Any:
    low, high = spec.minimum, spec.maximum
    if (
        _is_constant(low)
        and _is_constant(high)
        and tf.int64.min <= low.flat[0]
        and high.flat[0] < tf.int64.max
    ):
        # For this common case, TensorFlow has a kernel on every device.
        start, end = int(low.flat[0]), int(high.flat[0]) + 1
        small = tf.int32.min <= start and end <= tf.int32.max
        sample = tf.random.stateless_uniform(
            shape,
            seed,
            minval=start,
            maxval=end,
            dtype=tf.int32 if small else tf.int64,
            alg=_ALGORITHM,
        )
        return tf.cast(sample, dtype)
    return _sample_any_integers(low, high, dtype, shape, seed)


def _is_constant(bound: np.ndarray) -> bool:
    return bound.size > 0 and bool(np.all(bound == bound.flat[0]))


def _sample_any_integers(
    low: np.ndarray, high: np.ndarray, dtype: tf.DType, shape: Any, seed: tf.Tensor
) -> Any:
    """Draws integers between bounds that differ by element or fill 64 bits.

    The offset from the minimum is 64 random bits modulo the number of values. All
    arithmetic is modulo 2**64, so an overflow does no harm.
    """
    bits = tf.random.stateless_uniform(
        shape, seed, minval=None, maxval=None, dtype=tf.uint64, alg=_ALGORITHM
    )
    start = low.astype(np.uint64)
    with np.errstate(over="ignore"):
        num_values = np.asarray(high.astype(np.uint64) - start + np.uint64(1))
    # The whole range of a 64-bit dtype has 0 values modulo 2**64.
    everything = num_values == 0
    divisor = np.where(everything, np.uint64(1), num_values)
    offset = tf.where(everything, bits, tf.math.floormod(bits, divisor))
    return tf.cast(tf.bitcast(offset + start, tf.int64), dtype)


def _restrict(spec: BoundedTensorSpec, minimum: Any, maximum: Any) -> BoundedTensorSpec:
    if spec.dtype == tf.bool:
        return spec
    low = spec.minimum if minimum is None else np.maximum(spec.minimum, minimum)
    high = spec.maximum if maximum is None else np.minimum(spec.maximum, maximum)
    return BoundedTensorSpec(spec.shape, spec.dtype, low, high, spec.name)


def _sample_sparse(spec: Any, seed: tf.Tensor, outer_dims: Any) -> tf.SparseTensor:
    shape = _full_shape(spec, outer_dims)
    static_shape = tf.get_static_value(shape) if tf.is_tensor(shape) else shape
    if static_shape is None:
        raise NotImplementedError(
            f"outer_dims: got {outer_dims} with {spec}, expected statically known "
            "dimensions for a sparse tensor; pass Python integers."
        )
    shape = tf.TensorShape(static_shape)
    dense_shape = tf.constant(shape.as_list(), tf.int64)
    size = shape.num_elements()
    if size == 0:
        return tf.SparseTensor(
            tf.zeros([0, shape.rank], tf.int64), tf.zeros([0], spec.dtype), dense_shape
        )
    position_seed, value_seed = tf.unstack(
        tf.random.split(seed, num=2, alg=_ALGORITHM), num=2
    )
    positions = sample_bounded_spec(
        BoundedTensorSpec([_NUM_SPARSE_VALUES], tf.int64, 0, size - 1), position_seed
    )
    # No position may occur twice.
    positions = tf.sort(tf.unique(positions).y)
    is_text = spec.dtype == tf.string
    values = sample_bounded_spec(
        BoundedTensorSpec(
            [_NUM_SPARSE_VALUES], tf.int32 if is_text else spec.dtype, 0, 1
        ),
        value_seed,
    )[: tf.size(positions)]
    return tf.SparseTensor(
        tf.transpose(tf.unravel_index(positions, dense_shape)),
        tf.as_string(values) if is_text else values,
        dense_shape,
    )
