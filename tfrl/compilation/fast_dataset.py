"""Datasets whose elements reach eager code faster.

`tf.data` packs the tensors of each element into their nest node by node. For an agent's
experience the packing takes longer than the sampling. The iterators of a `fast_dataset`
determine the structure of the nest once. In a `tf.function`, where packing costs
nothing, they compute the element on the calling thread. `tf.data` does everything else.
If a release of TensorFlow does not allow these classes, the dataset stays an ordinary
one.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import tensorflow as tf

from tfrl.compilation import internals

_Pack = Callable[[Iterator[tf.Tensor]], Any]


def fast_dataset(
    dataset: tf.data.Dataset, draw: Callable[[], Any] | None = None
) -> tf.data.Dataset:
    """Gives a dataset fast iterators, and returns it.

    Datasets derived from it by `prefetch`, `map`, `take` and `with_options` have fast
    iterators, too.

    Args:
      dataset: Any dataset.
      draw: A function that draws an element in a graph, for an endless dataset whose
        elements are independent of each other. In a graph, `next(iterator)` calls
        `draw` instead of the pipeline, even after `prefetch`. This is cheaper, and the
        draw takes place in order with the graph's writes.
    """
    kind: Any = type(dataset)
    try:
        internals.change_class(dataset, _dataset_class(kind))
    except Exception:
        return dataset
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
                try:
                    internals.change_class(iterator, _iterator_class(kind))
                except Exception:
                    return iterator
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
        # A function that returns the tensors of the next element; None before the first
        # element is requested; False if `tf.data` has to pack the elements.
        _get_next: Any = None
        _pack: Any = None

        def __next__(self) -> Any:
            if not tf.executing_eagerly():
                draw = self._draw_in_graph
                return next_in_graph(self) if draw is None else draw()
            if self._get_next is None:
                self._get_next, self._pack = _prepare(self)
            if self._get_next is False:
                return super().__next__()
            try:
                tensors = self._get_next()
            except tf.errors.OutOfRangeError:
                raise StopIteration from None
            except TypeError:
                # The installed release's operation takes different arguments.
                self._get_next = False
                return super().__next__()
            return self._pack(iter(tensors))

    return FastIterator


def draws_in_graph(iterator: Any) -> bool:
    """Whether `next(iterator)` in a graph calls `draw`; see `fast_dataset`."""
    return getattr(iterator, "_draw_in_graph", None) is not None


def next_in_graph(iterator: Any) -> Any:
    """Returns the iterator's next element in a graph, computed on the calling thread.

    The usual operation computes the element on another thread. Handing over to that
    thread takes longer than drawing a batch.
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


def _prepare(iterator: Any) -> tuple[Any, Any]:
    """Returns a function that gets the next element, and a function that packs it.

    Returns `(False, None)` if only `tf.data` can pack the elements.
    """
    try:
        pack = _packing(iterator.element_spec)
        specs = tf.nest.flatten(iterator.element_spec)
        get_next = functools.partial(
            tf.raw_ops.IteratorGetNext,
            iterator=tf.nest.flatten(iterator, expand_composites=True)[0],
            output_types=[spec.dtype for spec in specs],
            output_shapes=[spec.shape for spec in specs],
        )
    except Exception:
        return False, None
    return (False, None) if pack is None else (get_next, pack)


def _packing(spec: Any) -> _Pack | None:
    """Returns a function that packs a nest of the next tensors of an iterator.

    Returns None if a leaf is not a dense tensor, or if a node of the nest is not a
    dict, tuple or named tuple.
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
    # Tensors come in the sorted order of `tf.nest`; the result has the spec's order.
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
