import pytest
import tensorflow as tf

from tfrl.replay_buffers import BufferInfo, ReplayBuffer


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
    with pytest.raises(ValueError, match=f"{name}: got 1.5, expected a positive"):
        getattr(_buffer(), method)(**{name: 1.5})


def test_lists_in_the_data_spec_are_refused():
    with pytest.raises(ValueError, match="Convert any lists to tuples"):
        _buffer({"x": [tf.TensorSpec([])]}).as_dataset()


@pytest.mark.parametrize(
    ("method", "arguments"),
    [
        ("num_frames", ()),
        ("add_batch", (0,)),
        ("get_next", ()),
        ("gather_all", ()),
        ("clear", ()),
    ],
)
def test_what_a_subclass_leaves_out_is_named(method, arguments):
    with pytest.raises(NotImplementedError, match=f"_Counting.{method}"):
        getattr(_buffer(), method)(*arguments)


def test_a_missing_deterministic_pass_is_named():
    with pytest.raises(NotImplementedError, match="single_deterministic_pass=True"):
        _buffer().as_dataset(single_deterministic_pass=True)
