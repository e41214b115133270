import numpy as np
import pytest
import tensorflow as tf

from tfrl.replay_buffers import (
    BufferInfo,
    EpisodicReplayBuffer,
    PyUniformReplayBuffer,
    ReplayBuffer,
    TFPrioritizedReplayBuffer,
    TFUniformReplayBuffer,
)
from tfrl.specs import array_spec


class _Counting(ReplayBuffer):
    """Gives out the numbers from 0 on; only sampling is implemented."""

    def _as_dataset(self, *arguments):
        self.arguments = arguments
        return tf.data.Dataset.counter().map(lambda i: (i, BufferInfo(i, ())))


def _buffer(data_spec=None):
    return _Counting(data_spec or tf.TensorSpec([], tf.int64), capacity=3)


def test_properties_give_back_the_arguments():
    buffer = ReplayBuffer({"x": (1, [2])}, 7, stateful_dataset=True)
    assert buffer.data_spec == {"x": (1, [2])}
    assert type(buffer.data_spec) is dict
    assert (buffer.capacity, buffer.stateful_dataset) == (7, True)


def test_datasets_are_neither_autotuned_nor_prefetched():
    options = _buffer().as_dataset(2).options()
    assert options.autotune.enabled is False


def test_arguments_reach_the_subclass_in_order():
    buffer = _buffer()
    buffer.as_dataset(2, 3, 4, abs)
    assert buffer.arguments == (2, 3, abs, 4)


@pytest.mark.parametrize("name", ["sample_batch_size", "num_steps"])
@pytest.mark.parametrize("method", ["get_next", "as_dataset"])
def test_counts_must_be_positive_integers(method, name):
    with pytest.raises(TypeError, match=f"{name}: .* or None, got 1.5"):
        getattr(_buffer(), method)(**{name: 1.5})


def test_lists_in_the_data_spec_are_refused():
    with pytest.raises(ValueError, match="Convert any lists to tuples"):
        _buffer({"x": [tf.TensorSpec([])]}).as_dataset()


def test_a_plain_buffer_promises_nothing():
    buffer = _buffer()
    assert not buffer.supports_xla
    assert not buffer.is_prioritized
    assert not buffer.draws_by_seed
    assert (buffer.batch_size, buffer.max_length) == (None, None)
    buffer.check_fits(10**9)


def test_a_buffer_works_in_graphs_if_it_has_variables():
    buffer = _buffer()
    assert not buffer.works_in_graph
    buffer.storage = tf.Variable(0)
    assert buffer.works_in_graph


def test_max_length_bounds_the_windows():
    class Bounded(_Counting):
        max_length = 3

    buffer = Bounded(tf.TensorSpec([], tf.int64), capacity=3)
    buffer.check_fits(3)
    buffer.check_fits(None)
    with pytest.raises(ValueError, match="num_steps: got 4, but the buffer keeps only"):
        buffer.check_fits(4)


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        (TFUniformReplayBuffer, (True, True, False, True)),
        (TFPrioritizedReplayBuffer, (True, True, True, True)),
        (PyUniformReplayBuffer, (False, False, False, False)),
        (EpisodicReplayBuffer, (False, True, False, False)),
    ],
)
def test_what_our_buffers_can_do(kind, expected):
    in_python = kind is PyUniformReplayBuffer
    spec = array_spec.ArraySpec if in_python else tf.TensorSpec
    buffer = kind(spec([], np.int64), 1)
    assert (
        buffer.supports_xla,
        buffer.works_in_graph,
        buffer.is_prioritized,
        buffer.draws_by_seed,
    ) == expected


@pytest.mark.parametrize(
    ("method", "arguments"),
    [
        ("num_frames", ()),
        ("add_batch", (0,)),
        ("get_next", ()),
        ("gather_all", ()),
        ("gather_first", (1,)),
        ("update_priorities", ([0], [1.0])),
        ("clear", ()),
    ],
)
def test_what_a_subclass_leaves_out_is_named(method, arguments):
    with pytest.raises(NotImplementedError, match=f"_Counting.{method}"):
        getattr(_buffer(), method)(*arguments)


def test_a_missing_deterministic_pass_is_named():
    with pytest.raises(NotImplementedError, match="single_deterministic_pass=True"):
        _buffer().as_dataset(single_deterministic_pass=True)
