import inspect

import numpy as np
import pytest
import tensorflow as tf

from tests.pairs import pairs
from tfrl.replay_buffers import BufferInfo, Table, TFUniformReplayBuffer
from tfrl.replay_buffers.ring import row_format
from tfrl.replay_buffers.table import PackedTable

ID_SPEC = tf.TensorSpec([], tf.int64, "id")


def _filled(batch_size=1, max_length=4, frames=0, **kwargs):
    """A buffer whose frame `i` of environment `b` is the number `100 * b + i`."""
    buffer = TFUniformReplayBuffer(ID_SPEC, batch_size, max_length, **kwargs)
    for i in range(frames):
        buffer.add_batch(100 * tf.range(batch_size, dtype=tf.int64) + i)
    return buffer


def _fill_in_graph(buffer, frames):
    offsets = 100 * tf.range(buffer.batch_size, dtype=tf.int64)

    @tf.function
    def fill():
        for i in tf.range(frames, dtype=tf.int64):
            buffer.add_batch(offsets + i)

    fill()


def test_the_constructor_takes_tf_agents_arguments_in_their_order():
    assert list(inspect.signature(TFUniformReplayBuffer).parameters) == [
        "data_spec",
        "batch_size",
        "max_length",
        "scope",
        "device",
        "table_fn",
        "dataset_drop_remainder",
        "dataset_window_shift",
        "stateful_dataset",
        "seed",
        "row_format",
    ]
    assert _filled().scope == "TFUniformReplayBuffer"


# Writing


def test_capacity_counts_the_frames_of_all_environments():
    assert _filled(batch_size=3, max_length=5).capacity == 15


@pytest.mark.parametrize(("frames", "expected"), [(0, 0), (3, 6), (4, 8), (9, 8)])
def test_num_frames_grows_up_to_the_capacity(frames, expected):
    assert int(_filled(batch_size=2, frames=frames).num_frames()) == expected


def test_nested_items_come_back_as_they_were_written():
    spec = (
        tf.TensorSpec([3], tf.float32),
        {"image": tf.TensorSpec([2, 2], tf.uint8)},
    )
    buffer = TFUniformReplayBuffer(spec, batch_size=2, max_length=3)
    items = (
        tf.constant([[1.0, 2, 3], [4, 5, 6]]),
        {"image": tf.constant(np.arange(8).reshape([2, 2, 2]), tf.uint8)},
    )
    buffer.add_batch(items)
    (vector, rest), info = buffer.get_next(sample_batch_size=20)
    assert rest["image"].dtype == tf.uint8
    for v, image in zip(vector.numpy(), rest["image"].numpy(), strict=True):
        b = 0 if v[0] == 1 else 1
        np.testing.assert_array_equal(v, items[0][b])
        np.testing.assert_array_equal(image, items[1]["image"][b])
    assert isinstance(info, BufferInfo)


def test_numpy_items_are_written():
    buffer = _filled()
    buffer.add_batch(np.array([7]))
    assert int(buffer.get_next()[0]) == 7


def test_add_batch_returns_the_id_of_the_frame():
    buffer = _filled()
    assert [int(buffer.add_batch(tf.constant([5], tf.int64))) for _ in range(2)] == [
        0,
        1,
    ]


def test_add_batch_can_be_wrapped_in_a_function_and_traces_once():
    buffer = _filled(max_length=9)
    add = tf.function(buffer.add_batch)
    for i in range(5):
        add(tf.constant([i], tf.int64))
    assert add.experimental_get_tracing_count() == 1
    np.testing.assert_array_equal(buffer.gather_all(), [[0, 1, 2, 3, 4]])


def test_a_wrong_batch_size_is_refused_by_path():
    buffer = TFUniformReplayBuffer({"x": ID_SPEC}, batch_size=2)
    message = r"items/x: got shape \(3,\), expected \(2,\).*batch"
    with pytest.raises(ValueError, match=message):
        buffer.add_batch({"x": tf.zeros([3], tf.int64)})


def test_a_wrong_dtype_is_refused_by_path():
    buffer = TFUniformReplayBuffer({"x": (ID_SPEC,)}, batch_size=1)
    message = "items/x/0: got dtype float32, expected int64; cast"
    with pytest.raises(ValueError, match=message):
        buffer.add_batch({"x": (np.zeros([1], np.float32),)})


@pytest.mark.parametrize(
    ("given", "stored"),
    [(np.float64, tf.float32), (np.int64, tf.int32), (np.int64, tf.float32)],
)
def test_arrays_of_a_wider_dtype_are_cast(given, stored):
    buffer = TFUniformReplayBuffer(tf.TensorSpec([2], stored), batch_size=1)
    buffer.add_batch(np.array([[3, 4]], given))
    assert buffer.gather_all().dtype == stored
    np.testing.assert_array_equal(buffer.gather_all(), [[[3, 4]]])


def test_tensors_and_arrays_of_another_kind_are_not_cast():
    buffer = TFUniformReplayBuffer(tf.TensorSpec([], tf.float32), batch_size=1)
    with pytest.raises(ValueError, match="got dtype float64, expected float32"):
        buffer.add_batch(tf.zeros([1], tf.float64))
    buffer = TFUniformReplayBuffer(tf.TensorSpec([], tf.uint8), batch_size=1)
    with pytest.raises(ValueError, match="got dtype int64, expected uint8"):
        buffer.add_batch(np.array([-1]))


def test_another_structure_is_refused():
    buffer = TFUniformReplayBuffer({"x": ID_SPEC}, batch_size=1)
    with pytest.raises(ValueError, match=r"another structure than.*data_spec"):
        buffer.add_batch({"y": tf.zeros([1], tf.int64)})


def test_a_refused_write_leaves_the_buffer_as_it_was():
    buffer = _filled(frames=2)
    with pytest.raises(ValueError, match="got shape"):
        buffer.add_batch(tf.zeros([5], tf.int64))
    np.testing.assert_array_equal(buffer.gather_all(), [[0, 1]])


@pytest.mark.parametrize("name", ["batch_size", "max_length"])
@pytest.mark.parametrize("value", [0, -1, 2.0, None, True])
def test_sizes_must_be_positive_integers(name, value):
    sizes = {"batch_size": 1, "max_length": 1, name: value}
    with pytest.raises((TypeError, ValueError), match=f"{name}: .* 1, got {value}"):
        TFUniformReplayBuffer(ID_SPEC, **sizes)


# Reading everything


@pytest.mark.parametrize("batch_size", [1, 3])
@pytest.mark.parametrize("frames", [0, 2, 4, 5, 11])
def test_gather_all_returns_the_newest_frames_oldest_first(batch_size, frames):
    expected = [
        [100 * b + i for i in range(max(0, frames - 4), frames)]
        for b in range(batch_size)
    ]
    gathered = _filled(batch_size, frames=frames).gather_all()
    np.testing.assert_array_equal(gathered, np.reshape(expected, gathered.shape))
    assert gathered.shape == (batch_size, min(frames, 4))


def test_clear_empties_the_buffer_and_keeps_the_storage():
    buffer = _filled(frames=3)
    storage = buffer.variables()[0].numpy()
    buffer.clear()
    assert int(buffer.num_frames()) == 0
    assert buffer.gather_all().shape == (1, 0)
    np.testing.assert_array_equal(buffer.variables()[0], storage)
    buffer.add_batch(tf.constant([9], tf.int64))
    np.testing.assert_array_equal(buffer.gather_all(), [[9]])


def test_clear_works_in_a_function():
    buffer = _filled(frames=3)
    tf.function(buffer.clear)()
    assert int(buffer.num_frames()) == 0


# Sampling


@pytest.mark.parametrize(
    ("sample_batch_size", "num_steps", "shape"),
    [(None, None, []), (5, None, [5]), (None, 2, [2]), (5, 2, [5, 2]), (5, 1, [5, 1])],
)
def test_shapes_of_samples(sample_batch_size, num_steps, shape):
    buffer = TFUniformReplayBuffer(tf.TensorSpec([3], tf.float32), 2, 4)
    for _ in range(3):
        buffer.add_batch(tf.zeros([2, 3]))
    items, info = buffer.get_next(sample_batch_size, num_steps)
    assert items.shape == [*shape, 3]
    assert info.ids.shape == shape
    assert info.probabilities.shape == (shape[:1] if sample_batch_size else [])


def test_unstacked_samples_are_a_tuple_of_steps():
    items, info = _filled(2, 10, frames=9).get_next(5, 3, time_stacked=False)
    assert isinstance(items, tuple)
    assert len(items) == len(info.ids) == 3
    np.testing.assert_array_equal(items[1], items[0] + 1)
    np.testing.assert_array_equal(items[2], items[1] + 1)
    np.testing.assert_array_equal(info.ids[2], items[2] % 100)
    single, _ = _filled(1, 10, frames=9).get_next(None, 3, time_stacked=False)
    assert [x.shape for x in single] == [[], [], []]


@pytest.mark.parametrize(
    ("num_steps", "frames"), pairs([1, 2, 3, 4], [4, 5, 6, 7, 8, 9, 10, 11])
)
def test_samples_are_exactly_the_windows_that_do_not_cross_the_seam(num_steps, frames):
    buffer = _filled(2, 4, frames, seed=1)
    items, info = buffer.sample(400, num_steps)
    first = frames - 4
    windows = {
        tuple(100 * b + start + np.arange(num_steps))
        for b in range(2)
        for start in range(first, frames - num_steps + 1)
    }
    assert {tuple(window) for window in items.numpy()} == windows
    np.testing.assert_array_equal(info.ids, items % 100)
    np.testing.assert_allclose(
        info.probabilities, np.full(400, 1 / len(windows)), rtol=1e-6
    )


def test_samples_are_uniform_over_windows():
    buffer = _filled(3, 8, frames=13, seed=5)
    draws = 30_000
    items, _ = buffer.sample(draws, 3, seed=7)
    _, counts = np.unique(items[:, 0], return_counts=True)
    assert len(counts) == 3 * 6
    expected = draws / len(counts)
    chi_square = np.sum((counts - expected) ** 2 / expected)
    # The 0.1 % and 99.9 % points of chi-square with 17 degrees of freedom.
    assert 4.4 < chi_square < 40.8


def test_one_frame_and_a_capacity_of_one():
    buffer = _filled(1, 1, frames=5)
    items, info = buffer.get_next(3, 1)
    np.testing.assert_array_equal(items, [[4], [4], [4]])
    np.testing.assert_array_equal(info.probabilities, [1, 1, 1])
    assert int(buffer.num_frames()) == 1


@pytest.mark.parametrize("in_graph", [False, True])
def test_sampling_an_empty_buffer_says_so(in_graph):
    sample = _filled().sample
    message = "is empty: num_steps=2 needs 2 frames of each environment"
    with pytest.raises(tf.errors.InvalidArgumentError, match=message):
        (tf.function(sample) if in_graph else sample)(3, 2)


@pytest.mark.parametrize("in_graph", [False, True])
def test_sampling_too_short_a_buffer_says_what_it_needs(in_graph):
    sample = _filled(frames=2).sample
    message = r"is too short: num_steps=3 needs 3 frames .* it holds\] \[2\]"
    with pytest.raises(tf.errors.InvalidArgumentError, match=message):
        (tf.function(sample) if in_graph else sample)(5, 3)


def test_windows_longer_than_the_ring_are_refused_at_once():
    message = r"num_steps: got 5, .*max_length=4 .*max_length >= 5"
    buffer = _filled(frames=4)
    with pytest.raises(ValueError, match=message):
        buffer.get_next(2, 5)
    with pytest.raises(ValueError, match=message):
        buffer.as_dataset(2, 5)


@pytest.mark.parametrize("name", ["sample_batch_size", "num_steps"])
def test_sample_sizes_must_be_positive_integers(name):
    with pytest.raises(ValueError, match=f"{name}: expected .* got 0"):
        _filled(frames=4).sample(**{name: 0})


def test_a_sample_is_a_function_of_its_seed():
    buffer = _filled(2, 50, frames=40)
    first, _ = buffer.sample(8, 2, seed=3)
    again, _ = buffer.sample(8, 2, seed=tf.constant([3, 0], tf.int32))
    other, _ = buffer.sample(8, 2, seed=4)
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)


def test_buffers_with_the_same_seed_sample_alike():
    first, second, other = (_filled(1, 50, 40, seed=s) for s in (1, 1, 2))
    for _ in range(3):
        a, b, c = (buffer.get_next(8)[0] for buffer in (first, second, other))
        np.testing.assert_array_equal(a, b)
        assert not np.array_equal(a, c)


def test_no_seed_follows_the_global_one():
    samples = []
    for _ in range(2):
        tf.random.set_seed(4)
        samples.append(_filled(1, 50, frames=40).get_next(8)[0])
    np.testing.assert_array_equal(*samples)


def test_eager_calls_trace_once():
    buffer = _filled(frames=4)
    for _ in range(3):
        buffer.get_next(4, 2)
        buffer.add_batch(tf.constant([1], tf.int64))
    assert buffer._draw_compiled.experimental_get_tracing_count() == 1


@pytest.mark.parametrize("jit_compile", [False, True])
def test_adding_and_sampling_in_one_graph_loop(jit_compile):
    buffer = _filled(2, 4, seed=1)
    offsets = tf.constant([0, 100], tf.int64)

    @tf.function(jit_compile=jit_compile)
    def loop(num_iterations):
        frames = tf.TensorArray(tf.int64, 12, element_shape=[8, 1])
        counts = tf.TensorArray(tf.float32, 12, element_shape=[])
        for i in tf.range(num_iterations):
            buffer.add_batch(offsets + tf.cast(i, tf.int64))
            items, info = buffer.sample(8, 1)
            frames = frames.write(i, items)
            counts = counts.write(i, 1 / info.probabilities[0])
        return frames.stack(), counts.stack()

    frames, counts = loop(tf.constant(12))
    np.testing.assert_allclose(counts, 2 * np.minimum(np.arange(1, 13), 4), rtol=1e-6)
    newest = np.arange(12)[:, None, None]
    ages = newest - frames.numpy() % 100
    assert np.all((ages >= 0) & (ages <= np.minimum(newest, 3)))
    loop(tf.constant(12))
    assert loop.experimental_get_tracing_count() == 1


def test_a_large_ring_is_filled_by_a_graph_loop():
    buffer = _filled(2, 1000)
    _fill_in_graph(buffer, 2500)
    np.testing.assert_array_equal(buffer.gather_all()[1], 100 + np.arange(1500, 2500))


# State


def test_a_restored_buffer_continues_bit_for_bit(tmp_path):
    buffer = _filled(2, 5, frames=8, seed=3)
    buffer.get_next(4, 2)
    path = tf.train.Checkpoint(buffer=buffer).save(str(tmp_path / "ckpt"))
    restored = _filled(2, 5, seed=99)
    tf.train.Checkpoint(buffer=restored).restore(path).assert_consumed()
    np.testing.assert_array_equal(restored.gather_all(), buffer.gather_all())
    for i in range(3):
        for b in (buffer, restored):
            b.add_batch(tf.constant([i, 100 + i], tf.int64))
        np.testing.assert_array_equal(
            restored.get_next(6, 2)[0], buffer.get_next(6, 2)[0]
        )


def test_variables_are_named_by_scope_and_path():
    spec = {"x": ID_SPEC, "y": ID_SPEC}
    buffer = TFUniformReplayBuffer(spec, 1, scope="replay", table_fn=Table)
    assert [v.name for v in buffer.variables()][:3] == [
        "replay/Table/x:0",
        "replay/Table/y:0",
        "replay/last_id:0",
    ]


def test_properties_give_back_the_arguments():
    buffer = TFUniformReplayBuffer((ID_SPEC,), 2, 3, "s", "cpu:0", Table)
    assert (buffer.data_spec, buffer.batch_size, buffer.max_length) == (
        (ID_SPEC,),
        2,
        3,
    )
    assert (buffer.scope, buffer.device, buffer.table_fn) == ("s", "cpu:0", Table)
    assert type(buffer.data_spec) is tuple
    assert all("CPU:0" in variable.device for variable in buffer.variables())


# Beside a writer


class _WriterOvertakes(Table):
    """A table during whose reads a writer adds frames, as long as `writes` says so."""

    writes: tf.Variable
    buffer: TFUniformReplayBuffer

    def read(self, rows, slots=None):
        values = super().read(rows, slots)
        with tf.control_dependencies(tf.nest.flatten(values)):
            self.writes.assign_sub(1)
            tf.cond(self.writes >= 0, self._write, lambda: tf.constant(0, tf.int64))
        return values

    def _write(self):
        return self.buffer.add_batch(tf.constant([3], tf.int64))


def _overtaken(writes):
    """A ring full of frames 0, 1, 2; the next reads are followed by a frame 3."""
    buffer = _filled(1, 3, 3, seed=1, table_fn=_WriterOvertakes)
    buffer._table.buffer = buffer
    buffer._table.writes = tf.Variable(writes)
    return buffer


def test_a_sample_that_a_writer_overtook_is_drawn_anew():
    for sample in (
        lambda buffer: buffer.sample(64),
        lambda buffer: next(iter(buffer.as_dataset(64))),
    ):
        items, info = sample(_overtaken(writes=1))
        assert set(items.numpy()) == {1, 2, 3}
        np.testing.assert_array_equal(items, info.ids)


def test_a_sample_of_a_buffer_that_is_cleared_meanwhile_is_drawn_anew():
    buffer = _overtaken(writes=1)
    write = buffer._table._write

    def clear_and_write():
        buffer.clear()
        return write()

    buffer._table._write = clear_and_write
    items, info = buffer.sample(8)
    assert (set(items.numpy()), set(info.ids.numpy())) == ({3}, {0})


def test_a_sample_that_a_writer_did_not_reach_stays():
    buffer = _overtaken(writes=0)
    assert set(buffer.sample(64)[0].numpy()) == {0, 1, 2}
    assert buffer._table.writes.numpy() == -1


def test_a_graph_that_a_writer_overtook_is_told_to_use_a_dataset():
    buffer = _overtaken(writes=1)
    sample = tf.function(lambda: buffer.sample(64))
    with pytest.raises(
        tf.errors.InvalidArgumentError, match=r"overtook it.*as_dataset"
    ):
        sample()


# The first frames


@pytest.mark.parametrize(
    ("frames", "expected"),
    [(0, [0, 0, 0]), (2, [10, 11, 0]), (4, [10, 11, 12]), (6, [0, 0, 12])],
)
@pytest.mark.parametrize("jit_compile", [False, True])
def test_gather_first_gives_zeros_for_what_is_not_held(jit_compile, frames, expected):
    """Of another environment than the first, and after frames that were cleared."""
    buffer = TFUniformReplayBuffer(ID_SPEC, batch_size=2, max_length=4)
    for i in range(7):
        buffer.add_batch(np.array([90 + i, 90 + i]))
    buffer.clear()
    for i in range(frames):
        buffer.add_batch(np.array([i, 10 + i]))
    gather = tf.function(lambda: buffer.gather_first(3), jit_compile=jit_compile)
    np.testing.assert_array_equal(gather()[1], expected)


def test_gather_first_of_more_than_fits_is_an_error():
    with pytest.raises(ValueError, match="max_length=4"):
        _filled(frames=4).gather_first(5)


# Rewriting


@pytest.mark.parametrize("in_graph", [False, True])
@pytest.mark.parametrize("table_fn", [Table, PackedTable])
def test_drawn_windows_are_written_anew_where_they_were(in_graph, table_fn):
    """Two environments, after the ring has begun anew; the oldest frame is number 3."""
    spec = {"a": ID_SPEC, "b": tf.TensorSpec([2], tf.float32)}
    buffer = TFUniformReplayBuffer(spec, 2, 5, table_fn=table_fn)
    for i in range(8):
        number = 100 * tf.range(2, dtype=tf.int64) + i
        floats = tf.cast(number, tf.float32)
        buffer.add_batch({"a": number, "b": tf.stack([floats, floats + 0.5], 1)})

    def rewrite(keys, items):
        buffer.rewrite(keys, items)

    if in_graph:
        rewrite = tf.function(rewrite, jit_compile=True)
    expected = buffer.gather_all()["a"].numpy()
    seen = set()
    for seed in range(20):
        items, info = buffer.sample(3, 2, seed)
        new = tf.nest.map_structure(tf.negative, items)
        rewrite(info.keys, new)
        numbers = np.abs(items["a"]).ravel()
        last = dict(zip(numbers, new["a"].numpy().ravel(), strict=True))
        expected = np.vectorize(lambda x, last=last: last.get(abs(x), x))(expected)
        found = buffer.gather_all()
        np.testing.assert_array_equal(found["a"], expected)
        halves = np.sign(expected) * (np.abs(expected) + 0.5)
        np.testing.assert_allclose(found["b"], np.stack([expected, halves], -1))
        seen.update(numbers)
    assert seen == {*range(3, 8), *range(103, 108)}


def test_a_frame_of_several_windows_becomes_what_the_last_has():
    buffer = _filled(frames=4)
    windows = tf.constant([[10, 20], [30, 40], [50, 60]], tf.int64)
    buffer.rewrite([1, 0, 2], windows)
    assert buffer.gather_all().numpy().tolist() == [[30, 40, 50, 60]]


def test_a_buffer_whose_rows_are_no_frames_is_not_rewritten():
    class Negated(row_format.RowFormat):
        pass

    buffer = _filled(frames=4, row_format=Negated())
    assert not buffer.can_rewrite
    with pytest.raises(ValueError, match="Negated, whose rows are not frames"):
        buffer.rewrite([1], tf.constant([[10, 20]], tf.int64))
