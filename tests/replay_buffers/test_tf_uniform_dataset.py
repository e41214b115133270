"""`TFUniformReplayBuffer.as_dataset`: freshness, order, and the deterministic pass."""

import threading

import numpy as np
import pytest
import tensorflow as tf

from tfrl.compilation import fast_dataset
from tfrl.replay_buffers import TFUniformReplayBuffer

ID_SPEC = tf.TensorSpec([], tf.int64, "id")


def _filled(batch_size=1, max_length=4, frames=0, **kwargs):
    """A buffer whose frame `i` of environment `b` is the number `100 * b + i`."""
    buffer = TFUniformReplayBuffer(ID_SPEC, batch_size, max_length, **kwargs)
    for i in range(frames):
        buffer.add_batch(100 * tf.range(batch_size, dtype=tf.int64) + i)
    return buffer


def _one_pass(buffer, *args, **kwargs):
    dataset = buffer.as_dataset(*args, single_deterministic_pass=True, **kwargs)
    return [items.tolist() for items, _ in dataset.as_numpy_iterator()]


@pytest.mark.parametrize(
    ("sample_batch_size", "num_steps", "shape"),
    [(None, None, []), (5, None, [5]), (None, 2, [2]), (5, 2, [5, 2])],
)
def test_shapes_are_known_before_the_first_element(sample_batch_size, num_steps, shape):
    dataset = _filled(frames=4).as_dataset(sample_batch_size, num_steps)
    items, info = dataset.element_spec
    assert items.shape == shape
    assert info.ids.shape == shape
    assert info.probabilities.shape == ([] if sample_batch_size is None else [5])


def test_every_write_is_seen_by_the_next_element():
    buffer = _filled(1, 1000)
    iterator = iter(buffer.as_dataset(2))
    stale = 0
    for i in range(200):
        buffer.add_batch(tf.constant([i], tf.int64))
        _, info = next(iterator)
        stale += round(1 / float(info.probabilities[0])) != i + 1
    assert stale == 0


def test_in_a_graph_loop_each_sample_is_of_the_frames_written_so_far():
    buffer = _filled(1, 1000, seed=1)

    @tf.function
    def loop(iterator):
        newest = tf.TensorArray(tf.int64, 200)
        counts = tf.TensorArray(tf.float32, 200)
        token = tf.constant(0, tf.int64)
        for i in tf.range(200):
            buffer.add_batch(tf.reshape(token + tf.cast(i, tf.int64), [1]))
            with tf.control_dependencies([buffer.num_frames()]):
                items, info = next(iterator)
            newest = newest.write(i, tf.reduce_max(items))
            counts = counts.write(i, 1 / info.probabilities[0])
            token = 0 * items[0]  # The next write waits for this sample.
        return newest.stack(), counts.stack()

    newest, counts = loop(iter(buffer.as_dataset(64)))
    np.testing.assert_allclose(counts, np.arange(1, 201), rtol=1e-5)
    assert np.all(newest <= np.arange(200))


def test_prefetching_and_parallel_calls_give_whole_windows():
    buffer = _filled(2, 8, frames=13)
    dataset = buffer.as_dataset(4, 3, num_parallel_calls=2).prefetch(3)
    for items, info in dataset.take(20):
        np.testing.assert_array_equal(items - items[:, :1], [[0, 1, 2]] * 4)
        np.testing.assert_array_equal(info.ids, items % 100)
        assert np.all(info.ids >= 5)


@pytest.mark.slow
def test_prefetched_samples_beside_a_writer_are_never_torn():
    spec = (ID_SPEC, tf.TensorSpec([50], tf.int64))
    buffer = TFUniformReplayBuffer(spec, batch_size=1, max_length=8)

    @tf.function
    def write(frame):
        buffer.add_batch((frame[None], tf.fill([1, 50], frame)))

    for i in range(8):
        write(tf.constant(i, tf.int64))
    stop = threading.Event()

    def keep_writing():
        i = 8
        while not stop.is_set():
            write(tf.constant(i, tf.int64))
            i += 1

    writer = threading.Thread(target=keep_writing)
    writer.start()
    try:
        dataset = buffer.as_dataset(4, 3, num_parallel_calls=2).prefetch(3)
        for (frames, copies), info in dataset.take(300):
            np.testing.assert_array_equal(frames, info.ids)
            np.testing.assert_array_equal(
                copies, np.repeat(frames.numpy()[..., None], 50, axis=-1)
            )
    finally:
        stop.set()
        writer.join()


def test_the_same_seed_gives_the_same_elements():
    first, second = (
        [items.numpy() for items, _ in _filled(2, 50, 40, seed=6).as_dataset(8).take(3)]
        for _ in range(2)
    )
    np.testing.assert_array_equal(first, second)
    assert not np.array_equal(first[0], first[1])


def test_a_new_iterator_continues_the_stream():
    buffer, other = (_filled(1, 50, frames=40, seed=2) for _ in range(2))
    dataset = buffer.as_dataset(8)
    restarted = [next(iter(dataset))[0].numpy() for _ in range(3)]
    iterator = iter(other.as_dataset(8))
    np.testing.assert_array_equal(
        restarted, [next(iterator)[0].numpy() for _ in range(3)]
    )


def test_a_restored_buffer_continues_the_stream(tmp_path):
    buffer = _filled(1, 50, frames=40, seed=2)
    iterator = iter(buffer.as_dataset(8))
    next(iterator)
    path = tf.train.Checkpoint(buffer=buffer).save(str(tmp_path / "ckpt"))
    expected = next(iterator)[0]
    restored = _filled(1, 50, seed=77)
    tf.train.Checkpoint(buffer=restored).restore(path)
    np.testing.assert_array_equal(next(iter(restored.as_dataset(8)))[0], expected)


def test_elements_are_uniform_over_windows():
    buffer = _filled(2, 6, frames=9, seed=11)
    starts = [items[:, 0].numpy() for items, _ in buffer.as_dataset(500, 2).take(40)]
    _, counts = np.unique(starts, return_counts=True)
    assert len(counts) == 2 * 5
    chi_square = np.sum((counts - 2000) ** 2 / 2000)
    # The 0.1 % and 99.9 % points of chi-square with 9 degrees of freedom.
    assert 1.15 < chi_square < 27.9


def test_items_are_preprocessed():
    dataset = _filled(1, 4, frames=4).as_dataset(
        2, 3, sequence_preprocess_fn=lambda items: items[:, :2] * 10
    )
    items, info = next(iter(dataset))
    np.testing.assert_array_equal(items, info.ids[:, :2] * 10)


def test_an_empty_buffer_is_an_error_and_no_hang():
    iterator = iter(_filled().as_dataset(4, 2))
    with pytest.raises(tf.errors.InvalidArgumentError, match="is empty: num_steps=2"):
        next(iterator)


def test_too_short_a_buffer_is_an_error_until_it_is_long_enough():
    buffer = _filled(frames=1)
    dataset = buffer.as_dataset(4, 2)
    with pytest.raises(tf.errors.InvalidArgumentError, match="is too short"):
        next(iter(dataset))
    buffer.add_batch(tf.constant([1], tf.int64))
    np.testing.assert_array_equal(next(iter(dataset))[0], [[0, 1]] * 4)


def test_lists_in_the_data_spec_are_refused():
    buffer = TFUniformReplayBuffer({"x": [ID_SPEC, ID_SPEC]}, batch_size=1)
    with pytest.raises(ValueError, match="Convert any lists to tuples"):
        buffer.as_dataset()


def test_elements_keep_the_structure_of_the_data_spec():
    spec = {"b": (ID_SPEC, ()), "a": ID_SPEC}
    buffer = TFUniformReplayBuffer(spec, batch_size=1)
    one = tf.ones([1], tf.int64)
    buffer.add_batch({"b": (one, ()), "a": 2 * one})
    items, _ = next(iter(buffer.as_dataset(1)))
    tf.nest.assert_same_structure(items, spec)
    assert (int(items["b"][0][0]), int(items["a"][0])) == (1, 2)


# The deterministic pass


@pytest.mark.parametrize("frames", [3, 4, 6])
def test_a_pass_gives_each_environments_frames_in_order(frames):
    first = max(0, frames - 4)
    expected = [100 * b + i for b in range(3) for i in range(first, frames)]
    assert _one_pass(_filled(3, 4, frames)) == expected


def test_a_pass_of_windows_keeps_the_shorter_last_one():
    assert _one_pass(_filled(2, 5, frames=7), num_steps=2) == [
        [2, 3],
        [4, 5],
        [6],
        [102, 103],
        [104, 105],
        [106],
    ]


def test_a_pass_drops_the_shorter_last_window_on_request():
    buffer = _filled(1, 5, frames=5, dataset_drop_remainder=True)
    assert _one_pass(buffer, num_steps=2) == [[0, 1], [2, 3]]


def test_windows_of_a_pass_overlap_by_the_shift():
    buffer = _filled(1, 5, frames=5, dataset_window_shift=1)
    assert _one_pass(buffer, num_steps=3) == [
        [0, 1, 2],
        [1, 2, 3],
        [2, 3, 4],
        [3, 4],
        [4],
    ]
    full = _filled(1, 5, 5, dataset_window_shift=1, dataset_drop_remainder=True)
    assert _one_pass(full, num_steps=3) == [[0, 1, 2], [1, 2, 3], [2, 3, 4]]


def test_a_pass_of_batches_goes_through_groups_of_environments():
    assert _one_pass(_filled(3, 2, frames=2), 2) == [[0, 100], [1, 101], [200], [201]]


def test_a_pass_drops_the_smaller_last_group_on_request():
    buffer = _filled(3, 2, frames=2, dataset_drop_remainder=True)
    assert _one_pass(buffer, 2) == [[0, 100], [1, 101]]


def test_batched_windows_are_full_and_of_one_group():
    assert _one_pass(_filled(3, 5, frames=5), 2, 2) == [
        [[0, 1], [100, 101]],
        [[2, 3], [102, 103]],
        [[200, 201]],
        [[202, 203]],
    ]


def test_a_pass_has_ids_and_no_probabilities():
    dataset = _filled(2, 4, 6).as_dataset(2, 2, single_deterministic_pass=True)
    for items, info in dataset:
        np.testing.assert_array_equal(info.ids, items % 100)
        assert info.probabilities == ()


@pytest.mark.parametrize(
    ("drop", "sample_batch_size", "num_steps", "shape"),
    [
        (False, None, None, []),
        (False, None, 2, [None]),
        (True, None, 2, [2]),
        (False, 2, None, [None]),
        (False, 3, None, [3]),
        (True, 2, 2, [2, 2]),
    ],
)
def test_shapes_of_a_pass_are_as_definite_as_can_be(
    drop, sample_batch_size, num_steps, shape
):
    dataset = _filled(3, 4, 4, dataset_drop_remainder=drop).as_dataset(
        sample_batch_size, num_steps, single_deterministic_pass=True
    )
    assert dataset.element_spec[0].shape.as_list() == shape


def test_a_pass_looks_at_the_buffer_when_its_iterator_is_made():
    buffer = _filled(1, 4)
    dataset = buffer.as_dataset(single_deterministic_pass=True)
    buffer.add_batch(tf.constant([5], tf.int64))
    assert [int(x) for x, _ in dataset] == [5]
    buffer.add_batch(tf.constant([6], tf.int64))
    assert [int(x) for x, _ in dataset] == [5, 6]


def test_a_pass_is_preprocessed_and_may_run_in_parallel():
    assert _one_pass(
        _filled(1, 6, frames=6),
        num_steps=2,
        num_parallel_calls=2,
        sequence_preprocess_fn=lambda items: -items,
    ) == [[0, -1], [-2, -3], [-4, -5]]


@pytest.mark.parametrize(
    ("arguments", "name"),
    [({"sample_batch_size": 3}, "batch_size=2"), ({"num_steps": 4}, "max_length=3")],
)
def test_a_pass_that_would_drop_everything_is_refused(arguments, name):
    buffer = _filled(2, 3, frames=3, dataset_drop_remainder=True)
    with pytest.raises(ValueError, match=f"more than {name}.*ALL data will be dropped"):
        buffer.as_dataset(single_deterministic_pass=True, **arguments)


def test_a_pass_through_an_empty_or_short_buffer_is_an_error():
    with pytest.raises(tf.errors.InvalidArgumentError, match="is empty"):
        _one_pass(_filled())
    with pytest.raises(tf.errors.InvalidArgumentError, match="is too short"):
        _one_pass(_filled(frames=1), 1, 2)


# In a graph


@pytest.mark.parametrize("change", [lambda d: d, lambda d: d.prefetch(3)])
def test_a_graph_draws_after_its_own_writes(change):
    buffer = TFUniformReplayBuffer(ID_SPEC, batch_size=1, max_length=1)
    iterator = iter(change(buffer.as_dataset(sample_batch_size=2)))

    @tf.function(autograph=False)
    def write_and_draw(value):
        buffer.add_batch(value)
        return next(iterator)[0]

    for value in range(20):
        drawn = write_and_draw(tf.constant([value], tf.int64))
        assert drawn.numpy().tolist() == [value, value]


def test_a_graph_draws_what_the_buffer_would():
    def make():
        buffer = TFUniformReplayBuffer(ID_SPEC, batch_size=1, max_length=50, seed=3)
        for value in range(50):
            buffer.add_batch(tf.constant([value], tf.int64))
        return buffer

    plain, buffer = make(), make()
    iterator = iter(buffer.as_dataset(sample_batch_size=4, num_steps=2))
    draw = tf.function(lambda: next(iterator), autograph=False)
    for _ in range(5):
        (items, info), (expected, expected_info) = draw(), plain.sample(4, 2)
        np.testing.assert_array_equal(items, expected)
        np.testing.assert_array_equal(info.ids, expected_info.ids)


def test_a_graph_draws_again_what_a_writer_overtook(monkeypatch):
    buffer = TFUniformReplayBuffer(ID_SPEC, batch_size=1, max_length=50, seed=3)
    for value in range(50):
        buffer.add_batch(tf.constant([value], tf.int64))
    draws = tf.Variable(0)
    draw = buffer._draw

    def overtaken_twice(*arguments):
        items, info, intact = draw(*arguments)
        return items, info, intact & (draws.assign_add(1, read_value=True) > 2)

    monkeypatch.setattr(buffer, "_draw", overtaken_twice)
    iterator = iter(buffer.as_dataset(sample_batch_size=4))
    items, info = tf.function(lambda: next(iterator), autograph=False)()
    assert int(draws) == 3
    np.testing.assert_array_equal(items, info.ids)


def test_a_graph_leaves_drawing_again_to_a_function_that_is_not_part_of_it():
    iterator = iter(_filled(frames=4).as_dataset(sample_batch_size=4))
    draw = tf.function(lambda: next(iterator), autograph=False)
    graph = draw.get_concrete_function().graph.as_graph_def(add_shapes=False)
    functions = {f.signature.name: f for f in graph.library.function}
    (branch,) = [n.attr["else_branch"].func.name for n in graph.node if n.op == "If"]
    (call,) = [
        node for node in functions[branch].node_def if "PartitionedCall" in node.op
    ]
    assert functions[call.attr["f"].func.name].attr["_noinline"].b
    assert len(functions[branch].node_def) < 20


@pytest.mark.parametrize("hook", ["get_next", "_get_next", "sample"])
def test_a_graph_takes_the_pipeline_of_a_buffer_with_a_draw_of_its_own(hook):
    def refuse(*args, **kwargs):
        raise AssertionError(hook)

    kind = type("Own", (TFUniformReplayBuffer,), {hook: refuse})
    buffer = kind(ID_SPEC, 1, 4)
    buffer.add_batch(tf.constant([7], tf.int64))
    iterator = iter(buffer.as_dataset(3))
    assert not fast_dataset.draws_in_graph(iterator)
    items, _ = tf.function(lambda: next(iterator), autograph=False)()
    np.testing.assert_array_equal(items, [7, 7, 7])


def test_without_windows_their_shift_leaves_out_no_frame():
    buffer = TFUniformReplayBuffer(
        tf.TensorSpec([], tf.int64), 1, 10, dataset_window_shift=2
    )
    for frame in range(5):
        buffer.add_batch(tf.constant([frame], tf.int64))
    dataset = buffer.as_dataset(single_deterministic_pass=True)
    assert [int(frame) for frame, _ in dataset] == [0, 1, 2, 3, 4]
