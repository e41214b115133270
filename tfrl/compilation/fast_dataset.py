"""Datasets whose elements are handed to eager code in less time.

`tf.data` packs the tensors of each element anew into their nest, node by node. For the
experience of an agent that takes longer than sampling it does. The iterators of a
`fast_dataset` find out once how the nest is put together. In a `tf.function`, where the
packing costs nothing, they take the element on the thread that asks for it. All else is
`tf.data`'s own.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import tensorflow as tf

_Pack = Callable[[Iterator[tf.Tensor]], Any]


def fast_dataset(
    dataset: tf.data.Dataset, draw: Callable[[], Any] | None = None
) -> tf.data.Dataset:
    """Returns the dataset, whose class is now one with fast iterators.

    What `prefetch`, `map`, `take` and `with_options` make of it has them as well.

    Args:
      dataset: any dataset.
      draw: for an endless dataset whose elements depend on nothing before them, what
        draws one in a graph: there `next(iterator)` does that itself, also behind
        `prefetch`. It is cheaper than the pipeline, and in order with the graph's
        writes.
    """
    kind: Any = type(dataset)
    dataset.__class__ = _dataset_class(kind)
    dataset._draw_in_graph = draw
    return dataset


@functools.cache
def _dataset_class(kind: Any) -> Any:
    """Returns the subclass of a class of datasets that makes fast iterators."""
    if hasattr(kind, "_makes_fast_iterators"):
        return kind

    class FastDataset(kind):
        _makes_fast_iterators = True

        def __iter__(self) -> Any:
            iterator = super().__iter__()
            synchronous = tf.config.experimental.get_synchronous_execution()
            if tf.executing_eagerly() and synchronous:
                kind: Any = type(iterator)
                iterator.__class__ = _iterator_class(kind)
                iterator._draw_in_graph = self._draw_in_graph
            return iterator

        def prefetch(self, *args: Any, **kwargs: Any) -> Any:
            return fast_dataset(super().prefetch(*args, **kwargs), self._draw_in_graph)

        def map(self, *args: Any, **kwargs: Any) -> Any:
            return fast_dataset(super().map(*args, **kwargs))

        def take(self, *args: Any, **kwargs: Any) -> Any:
            return fast_dataset(super().take(*args, **kwargs))

        def with_options(self, *args: Any, **kwargs: Any) -> Any:
            return fast_dataset(
                super().with_options(*args, **kwargs), self._draw_in_graph
            )

    return FastDataset


@functools.cache
def _iterator_class(kind: Any) -> Any:
    """Returns the subclass of a class of iterators that packs elements itself."""

    class FastIterator(kind):
        _draw_in_graph: Callable[[], Any] | None = None
        # None until the first element; False where `tf.data` has to pack.
        _take: Any = None

        def __next__(self) -> Any:
            if not tf.executing_eagerly():
                draw = self._draw_in_graph
                return next_in_graph(self) if draw is None else draw()
            if self._take is False:
                return super().__next__()
            if self._take is None:
                self._take = _taking(self)
                return next(self)
            try:
                return self._take()
            except tf.errors.OutOfRangeError:
                raise StopIteration from None

    return FastIterator


def next_in_graph(iterator: Any) -> Any:
    """`next(iterator)` in a graph, on the thread that asks.

    The ordinary operation hands over to another thread and waits for it, lest a slow
    pipeline blocks this one; that takes longer than drawing a batch.
    """
    (resource,) = tf.nest.flatten(iterator, expand_composites=True)
    specs = tf.nest.flatten(iterator.element_spec, expand_composites=True)
    elements = tf.raw_ops.IteratorGetNextSync(
        iterator=resource,
        output_types=[spec.dtype for spec in specs],
        output_shapes=[spec.shape for spec in specs],
    )
    return tf.nest.pack_sequence_as(
        iterator.element_spec, elements, expand_composites=True
    )


def _taking(iterator: Any) -> Callable[[], Any] | bool:
    """Returns what takes the next element; False if that is left to `tf.data`."""
    pack = _packing(iterator.element_spec)
    if pack is None:
        return False
    specs = tf.nest.flatten(iterator.element_spec)
    get_next = functools.partial(
        tf.raw_ops.IteratorGetNext,
        iterator=tf.nest.flatten(iterator, expand_composites=True)[0],
        output_types=[spec.dtype for spec in specs],
        output_shapes=[spec.shape for spec in specs],
    )
    return lambda: pack(iter(get_next()))


def _packing(spec: Any) -> _Pack | None:
    """Returns a function that takes what its nest needs from an iterator of tensors.

    None if a leaf is no dense tensor, or a node no dict, tuple or named tuple.
    """
    if type(spec) is tf.TensorSpec:
        return next
    if type(spec) is dict:
        return _packing_dict(spec)
    if not isinstance(spec, tuple):
        return None
    make = tuple if type(spec) is tuple else getattr(type(spec), "_make", None)
    parts = _packings(spec)
    if make is None or parts is None:
        return None
    return lambda tensors: make([part(tensors) for part in parts])


def _packing_dict(spec: dict[Any, Any]) -> _Pack | None:
    # Tensors come in the order of `tf.nest`, and go into that of the spec.
    keys = sorted(spec)
    parts = _packings([spec[key] for key in keys])
    if parts is None:
        return None

    def pack(tensors: Iterator[tf.Tensor]) -> dict[Any, Any]:
        packed = {key: part(tensors) for key, part in zip(keys, parts, strict=True)}
        return {key: packed[key] for key in spec}

    return pack


def _packings(specs: Iterable[Any]) -> list[_Pack] | None:
    found = [_packing(spec) for spec in specs]
    parts = [part for part in found if part is not None]
    return parts if len(parts) == len(found) else None
