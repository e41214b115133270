"""Fast datasets give the elements that `tf.data` gives, in eager code and graphs."""

from typing import NamedTuple

import pytest
import tensorflow as tf

from tfrl.compilation import fast_dataset


class Pair(NamedTuple):
    left: tf.Tensor
    right: tf.Tensor


def numbers(structure, count=3):
    """`count` elements of the nest that `structure` makes of 0, 1, 2, ..."""
    return fast_dataset.fast_dataset(tf.data.Dataset.range(count).map(structure))


STRUCTURES = {
    "tensor": lambda i: i,
    "tuple": lambda i: (i, i + 1),
    "named": lambda i: (Pair(i, (i + 1,)), Pair(i + 2, ())),
    "dict": lambda i: {"b": i, "a": (i + 1, {"z": i + 2, "y": i + 3})},
    "empty": lambda i: (i, (), {"a": ()}),
}


@pytest.mark.parametrize("structure", STRUCTURES.values(), ids=STRUCTURES)
def test_elements_are_those_of_tf_data(structure):
    fast = numbers(structure)
    plain = tf.data.Dataset.range(3).map(structure)

    for got, expected in zip(fast, plain, strict=True):
        tf.nest.assert_same_structure(got, expected)
        assert str(tf.nest.map_structure(int, got)) == str(
            tf.nest.map_structure(int, expected)
        )


def test_the_packing_of_tf_data_is_left_out(monkeypatch):
    iterator = iter(numbers(STRUCTURES["named"]).prefetch(2))

    def fail(self):
        raise AssertionError("tf.data packed the element")

    monkeypatch.setattr(type(iterator).__mro__[1], "__next__", fail)
    assert [int(pair.left) for pair, _ in iterator] == [0, 1, 2]


def test_the_end_stops_the_iteration_each_time():
    iterator = iter(numbers(STRUCTURES["tuple"], count=1))
    next(iterator)
    for _ in range(2):
        with pytest.raises(StopIteration):
            next(iterator)


def test_sparse_and_ragged_tensors_are_left_to_tf_data():
    ragged = fast_dataset.fast_dataset(
        tf.data.Dataset.from_tensors(
            (tf.ragged.constant([[1], [2, 3]]), tf.constant(4))
        )
    )
    element, number = next(iter(ragged))
    assert isinstance(element, tf.RaggedTensor)
    assert element.to_list() == [[1], [2, 3]]
    assert int(number) == 4


@pytest.mark.parametrize(
    "change",
    [
        lambda d: d.prefetch(2),
        lambda d: d.map(lambda pair, rest: (pair, rest)),
        lambda d: d.take(2),
        lambda d: d.with_options(tf.data.Options()),
    ],
    ids=["prefetch", "map", "take", "with_options"],
)
def test_datasets_made_of_it_are_fast_too(change):
    dataset = change(numbers(STRUCTURES["named"]))
    assert hasattr(type(dataset), "_makes_fast_iterators")
    assert [int(rest.left) for _, rest in dataset][:2] == [2, 3]


def test_functions_take_the_iterator_captured_and_as_an_argument():
    dataset = numbers(STRUCTURES["named"], count=10)
    iterator = iter(dataset)
    captured = tf.function(lambda: next(iterator)[0].left, autograph=False)
    given = tf.function(lambda iterator: next(iterator)[0].left, autograph=False)

    got = [captured(), next(iterator)[0].left, given(iterator), given(iterator)]

    assert [int(x) for x in got] == [0, 1, 2, 3]
    assert isinstance(iterator, tf.data.Iterator)
    assert isinstance(dataset, tf.data.Dataset)
    assert given.experimental_get_tracing_count() == 1


def test_a_function_goes_through_the_dataset():
    dataset = numbers(STRUCTURES["tuple"], count=4)

    @tf.function
    def total():
        result = tf.constant(0, tf.int64)
        for first, _ in dataset:
            result += first
        return result

    assert int(total()) == 6
