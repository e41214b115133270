import keras
import numpy as np
import pytest
import tensorflow as tf

from tests.pairs import pairs
from tfrl.replay_buffers import PrioritizedBufferInfo, TFPrioritizedReplayBuffer

ID_SPEC = tf.TensorSpec([], tf.int64, "id")


def _filled(batch_size=1, max_length=4, frames=0, **kwargs):
    """A buffer whose frame `i` of environment `b` is the number `100 * b + i`."""
    buffer = TFPrioritizedReplayBuffer(ID_SPEC, batch_size, max_length, **kwargs)
    for i in range(frames):
        buffer.add_batch(100 * tf.range(batch_size, dtype=tf.int64) + i)
    return buffer


def _key(buffer, frame):
    """The key of the frame of this number."""
    return frame % 100 * buffer.batch_size + frame // 100


def _prioritize(buffer, priorities):
    """Sets the priorities of frames, a dict from their numbers."""
    keys = [_key(buffer, frame) for frame in priorities]
    buffer.update_priorities(np.array(keys), np.array(list(priorities.values())))


def _frequencies(buffer, num_steps=None, draws=2_000, seed=0):
    """How often each first frame was drawn, and the probabilities that were told."""
    items, info = buffer.sample(draws, num_steps, seed=seed)
    starts = items.numpy() if num_steps is None else items.numpy()[:, 0]
    frames, first, counts = np.unique(starts, return_index=True, return_counts=True)
    told = info.probabilities.numpy()
    return dict(zip(frames, counts, strict=True)), dict(
        zip(frames, told[first], strict=True)
    )


# What is drawn


def test_probabilities_are_priorities_to_the_power_of_alpha():
    buffer = _filled(2, 4, frames=3, priority_exponent=0.5, epsilon=0.25)
    _prioritize(buffer, {0: 0.75, 1: 3.75, 2: 8.75, 100: 15.75, 101: 24.75, 102: 0.0})
    _, told = _frequencies(buffer)
    # Roots of the priorities with epsilon: 1, 2, 3, 4, 5 and 0.5.
    expected = {0: 1, 1: 2, 2: 3, 100: 4, 101: 5, 102: 0.5}
    assert set(told) == set(expected)
    for frame, root in expected.items():
        assert told[frame] == pytest.approx(root / 15.5, rel=1e-6)
    squares = sum(root**2 for root in expected.values())
    assert float(buffer.priority_evenness()) == pytest.approx(15.5**2 / 6 / squares)


def test_samples_are_as_frequent_as_their_probabilities():
    draws = 30_000
    buffer = _filled(3, 8, frames=13, priority_exponent=0.7)
    rng = np.random.default_rng(0)
    _prioritize(
        buffer,
        {100 * b + i: rng.uniform(0.1, 5) for b in range(3) for i in range(5, 13)},
    )
    counts, told = _frequencies(buffer, num_steps=3, draws=draws, seed=7)
    assert set(counts) == {100 * b + i for b in range(3) for i in range(5, 11)}
    assert sum(told.values()) == pytest.approx(1, rel=1e-5)
    chi_square = sum(
        (counts[f] - draws * told[f]) ** 2 / (draws * told[f]) for f in told
    )
    # The 0.1 % and 99.9 % points of chi-square with 17 degrees of freedom.
    assert 4.4 < chi_square < 40.8


@pytest.mark.parametrize("num_steps", [1, 2, 4])
def test_no_priority_brings_a_window_across_the_seam(num_steps):
    buffer = _filled(2, 4, frames=3)
    for newest in range(3, 24):
        buffer.add_batch(tf.constant([newest, 100 + newest], tf.int64))
        starts = range(newest - 3, newest - num_steps + 2)
        # Those at which no window of this length may start are the likeliest by far.
        _prioritize(
            buffer,
            {
                100 * b + i: 1.0 if i in starts else 1e12
                for b in range(2)
                for i in range(newest - 3, newest + 1)
            },
        )
        items, info = buffer.sample(400, num_steps, seed=1)
        windows = {
            tuple(100 * b + start + np.arange(num_steps))
            for b in range(2)
            for start in starts
        }
        assert {tuple(window) for window in items.numpy()} == windows
        np.testing.assert_array_equal(info.ids, items % 100)
        np.testing.assert_allclose(
            info.probabilities, np.full(400, 1 / len(windows)), rtol=1e-6
        )


def test_with_an_exponent_of_zero_samples_are_uniform():
    buffer = _filled(2, 4, frames=4, priority_exponent=0.0)
    _prioritize(buffer, {0: 1000.0, 1: 0.001})
    _, told = _frequencies(buffer)
    np.testing.assert_allclose(list(told.values()), np.full(8, 1 / 8), rtol=1e-6)


def test_a_priority_of_zero_is_never_drawn_without_an_epsilon():
    buffer = _filled(1, 4, frames=4, epsilon=0.0)
    _prioritize(buffer, {0: 0.0, 3: 0.0})
    assert set(_frequencies(buffer)[0]) == {1, 2}


def test_a_sample_of_zero_priorities_alone_is_an_error():
    buffer = _filled(1, 4, frames=2, epsilon=0.0)
    _prioritize(buffer, {0: 0.0, 1: 0.0})
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"are 0.*epsilon > 0"):
        buffer.sample(3)


# Importance weights


@pytest.mark.parametrize("beta", [0.0, 0.4, 1.0])
def test_weights_follow_the_paper_but_for_its_maximum(beta):
    buffer = _filled(2, 6, frames=9, importance_exponent=beta, seed=2)
    rng = np.random.default_rng(1)
    _prioritize(
        buffer,
        {100 * b + i: rng.uniform(0.1, 5) for b in range(2) for i in range(3, 9)},
    )
    _, info = buffer.sample(32, 2)
    weights = (1 / 10 / info.probabilities.numpy()) ** beta
    np.testing.assert_allclose(info.weights, weights, rtol=1e-5)
    assert info.weights.dtype == tf.float32


@pytest.mark.parametrize("max_weight", [None, 3.0])
def test_no_weight_is_above_the_largest(max_weight):
    settings = {} if max_weight is None else {"max_weight": max_weight}
    buffer = _filled(1, 4, frames=4, importance_exponent=1.0, epsilon=0.0, **settings)
    _prioritize(buffer, {0: 1e-3, 1: 1.0, 2: 1.0, 3: 1.0})
    items, info = buffer.sample(2_000, seed=0)
    weights = dict(zip(items.numpy(), info.weights.numpy(), strict=True))
    # Priorities to the power of 0.6 have the mean 3.0158 / 4, and the least is 0.0158.
    assert weights[0] == (max_weight or 10)
    assert weights[1] == pytest.approx(3.01585 / 4, rel=1e-5)


def test_with_an_exponent_of_one_losses_are_as_under_uniform_sampling():
    """Their weighted mean over the sample is that over all frames."""
    buffer = _filled(1, 8, frames=8, importance_exponent=1.0)
    _prioritize(buffer, {i: 1.0 + i for i in range(8)})
    items, info = buffer.sample(20_000, seed=0)
    losses = tf.cast(items, tf.float32) ** 2
    # Four standard errors of this mean.
    np.testing.assert_allclose(
        tf.reduce_mean(info.weights * losses), np.mean(np.arange(8.0) ** 2), atol=0.4
    )


def test_a_single_window_has_the_weight_of_its_probability():
    buffer = _filled(1, 4, frames=4, importance_exponent=1.0)
    _prioritize(buffer, {0: 0.5})
    _, info = buffer.sample(seed=0)
    expected = 1 / (4 * float(info.probabilities))
    assert float(info.weights) == pytest.approx(expected, rel=1e-6)


def test_the_exponent_of_the_weights_may_be_a_schedule_of_a_step():
    counter = tf.Variable(0, dtype=tf.int64)
    anneal = keras.optimizers.schedules.PolynomialDecay(0.4, 3, 1.0)
    buffer = _filled(1, 4, importance_exponent=anneal, step=counter)
    betas = []
    for _ in range(5):
        betas.append(float(buffer.importance_exponent()))
        counter.assign_add(1)
    np.testing.assert_allclose(betas, [0.4, 0.6, 0.8, 1.0, 1.0], rtol=1e-6)
    with pytest.raises(ValueError, match=r"step: got None with .* as importance_exp"):
        _filled(1, 4, importance_exponent=anneal)


@pytest.mark.parametrize(
    ("kind", "way"), pairs(["variable", "callable"], ["sample", "dataset"])
)
def test_the_exponent_of_the_weights_may_change_in_time(kind, way):
    beta = tf.Variable(0.0)
    buffer = _filled(
        1,
        4,
        frames=4,
        importance_exponent=beta if kind == "variable" else lambda: beta + 0,
        seed=1,
    )
    _prioritize(buffer, {0: 0.1, 1: 10.0})
    iterator = iter(buffer.as_dataset(64))
    draw = (lambda: next(iterator)) if way == "dataset" else lambda: buffer.sample(64)
    np.testing.assert_array_equal(draw()[1].weights, np.ones(64))
    beta.assign(1.0)
    _, info = draw()
    np.testing.assert_allclose(
        info.weights,
        np.minimum(1 / (4 * info.probabilities.numpy()), 10),
        rtol=1e-6,
    )
    assert np.min(info.weights) < 0.5


# Priorities


def test_new_frames_have_the_largest_priority_so_far():
    buffer = _filled(1, 4, frames=2, priority_exponent=1.0, epsilon=0.0)
    _prioritize(buffer, {0: 6.0, 1: 2.0})
    _prioritize(buffer, {0: 1.0})
    buffer.add_batch(tf.constant([2], tf.int64))
    assert _frequencies(buffer)[1] == pytest.approx(
        {0: 1 / 9, 1: 2 / 9, 2: 6 / 9}, rel=1e-6
    )


def test_only_clear_forgets_the_largest_priority():
    buffer = _filled(1, 2, frames=2, priority_exponent=1.0, epsilon=0.0)
    _prioritize(buffer, {0: 1e30, 1: 2.0})
    for i in range(2, 6):  # The frame with that priority leaves.
        buffer.add_batch(tf.constant([i], tf.int64))
    _prioritize(buffer, {4: 3.0})
    frequencies = _frequencies(buffer)[1]
    assert frequencies[5] == pytest.approx(1.0)
    buffer.clear()
    buffer.add_batch(tf.constant([0], tf.int64))
    np.testing.assert_array_equal(buffer.get_priorities([0]), [1])


def test_the_first_frames_have_the_priority_one():
    buffer = _filled(3, 4, frames=1)
    np.testing.assert_array_equal(buffer.get_priorities([0, 1, 2]), [1, 1, 1])


def test_a_new_frame_does_not_inherit_its_rows_priority():
    buffer = _filled(1, 2, frames=2, priority_exponent=1.0, epsilon=0.0)
    _prioritize(buffer, {0: 0.5, 1: 0.5})
    for i in range(2, 8):
        buffer.add_batch(tf.constant([i], tf.int64))
    assert _frequencies(buffer)[1] == pytest.approx({6: 0.5, 7: 0.5}, rel=1e-6)
    np.testing.assert_array_equal(buffer.get_priorities([6, 7]), [1, 1])


@pytest.mark.parametrize("batch_size", [1, 3])
def test_keys_of_overwritten_frames_are_ignored(batch_size):
    buffer = _filled(batch_size, 4, frames=4)
    _, info = buffer.sample(64, seed=0)
    for i in range(4, 7):
        buffer.add_batch(100 * tf.range(batch_size, dtype=tf.int64) + i)
    held = np.arange(3 * batch_size, 7 * batch_size)
    before = buffer.get_priorities(held).numpy()
    stale = info.keys.numpy()[info.ids.numpy() < 3]
    assert len(stale) > 0
    buffer.update_priorities(stale, np.full(len(stale), 1e9))
    np.testing.assert_array_equal(buffer.get_priorities(held), before)
    # Nor do they make the largest priority of new frames.
    buffer.add_batch(100 * tf.range(batch_size, dtype=tf.int64) + 7)
    assert float(buffer.get_priorities(7 * batch_size)) == 1


def test_keys_are_those_of_the_windows():
    buffer = _filled(3, 5, frames=9, priority_exponent=1.0)
    items, info = buffer.sample(40, 2, seed=3)
    buffer.update_priorities(info.keys, tf.cast(items[:, 0], tf.float32))
    for key, frame in zip(info.keys, items[:, 0], strict=True):
        assert float(buffer.get_priorities(key)) == pytest.approx(int(frame), rel=1e-5)


def test_a_window_that_was_drawn_twice_gets_the_larger_priority():
    buffer = _filled(1, 4, frames=4, priority_exponent=1.0, epsilon=0.0)
    buffer.update_priorities([2, 1, 2], [3.0, 5.0, 2.0])
    # A GPU may round the power of exponent 1.
    found = buffer.get_priorities([0, 1, 2, 3])
    np.testing.assert_allclose(found, [1, 5, 3, 1], rtol=1e-14)


@pytest.mark.parametrize("value", [-1.0, np.nan, np.inf])
def test_priorities_must_be_numbers_from_zero_up(value):
    with pytest.raises(
        tf.errors.InvalidArgumentError, match=r"priorities: got one.*tf.abs\(td_error"
    ):
        _filled(1, 4, frames=4).update_priorities([0, 1], [1.0, value])


@pytest.mark.parametrize("key", [-1, 4])
def test_keys_of_no_frame_are_refused(key):
    with pytest.raises(tf.errors.InvalidArgumentError, match="keys: got some that no"):
        _filled(1, 4, frames=4).update_priorities([key], [1.0])


def test_priorities_must_be_a_vector_like_the_keys():
    with pytest.raises(
        ValueError, match=r"priorities: got shape \(2, 1\) for keys of shape \(2,\)"
    ):
        _filled(1, 4, frames=4).update_priorities([0, 1], [[1.0], [2.0]])


@pytest.mark.parametrize(
    "name", ["priority_exponent", "importance_exponent", "epsilon"]
)
def test_settings_must_not_be_negative(name):
    with pytest.raises(ValueError, match=f"{name}: .* of at least 0, got -0.1"):
        _filled(**{name: -0.1})


def test_the_largest_weight_must_be_positive():
    with pytest.raises(ValueError, match=r"max_weight: expected .* got 0"):
        _filled(max_weight=0)


# As the uniform buffer


@pytest.mark.parametrize(
    ("sample_batch_size", "num_steps", "shape"),
    [(None, None, []), (5, 2, [5, 2])],
)
def test_shapes_of_samples(sample_batch_size, num_steps, shape):
    buffer = _filled(2, 4, frames=4)
    outer = [] if sample_batch_size is None else [5]
    spec = buffer.as_dataset(sample_batch_size, num_steps).element_spec
    for items, info in (spec, buffer.get_next(sample_batch_size, num_steps)):
        assert isinstance(info, PrioritizedBufferInfo)
        assert items.shape == info.ids.shape == shape
        assert info.probabilities.shape == info.keys.shape == outer
        assert info.weights.shape == outer


def test_gather_all_and_the_deterministic_pass_are_in_order():
    buffer = _filled(2, 3, frames=5)
    np.testing.assert_array_equal(buffer.gather_all(), [[2, 3, 4], [102, 103, 104]])
    dataset = buffer.as_dataset(single_deterministic_pass=True)
    assert [int(x) for x, _ in dataset] == [2, 3, 4, 102, 103, 104]


def test_clear_forgets_frames_and_priorities():
    buffer = _filled(1, 4, frames=4)
    _prioritize(buffer, {0: 100.0, 1: 100.0})
    buffer.clear()
    assert int(buffer.num_frames()) == 0
    with pytest.raises(tf.errors.InvalidArgumentError, match="is empty"):
        buffer.sample(2)
    for i in range(3):
        buffer.add_batch(tf.constant([i], tf.int64))
    assert _frequencies(buffer)[1] == pytest.approx(
        {i: 1 / 3 for i in range(3)}, rel=1e-6
    )


@pytest.mark.parametrize("seed", [1, pytest.param(None, marks=pytest.mark.slow)])
def test_the_same_seed_gives_the_same_samples(seed):
    first, again, other = (_filled(2, 50, 40, seed=s) for s in (1, 1, 2))
    samples = [tf.nest.flatten(b.sample(8, seed=seed)) for b in (first, again)]
    for x, y in zip(*samples, strict=True):
        np.testing.assert_array_equal(x, y)
    different = not np.array_equal(other.sample(8, seed=seed)[0], samples[0][0])
    assert different == (seed is None)


def test_the_same_seed_gives_the_same_elements():
    datasets = [_filled(2, 50, 40, seed=6).as_dataset(8) for _ in range(2)]
    first, again = ([x.numpy() for x, _ in dataset.take(3)] for dataset in datasets)
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first[0], first[1])


def test_every_update_is_seen_by_the_next_element():
    buffer = _filled(1, 20, frames=20, priority_exponent=1.0, epsilon=0.0)
    iterator = iter(buffer.as_dataset(4))
    for i in range(20):
        buffer.update_priorities(np.arange(20), np.arange(20) == i)
        items, _ = next(iterator)
        np.testing.assert_array_equal(items, [i] * 4)


def test_a_restored_buffer_continues_bit_for_bit(tmp_path):
    buffer = _filled(2, 5, frames=8, seed=3)
    _prioritize(buffer, {7: 50.0, 104: 3.0})
    buffer.get_next(4, 2)
    path = tf.train.Checkpoint(buffer=buffer).save(str(tmp_path / "ckpt"))
    restored = _filled(2, 5, seed=99)
    tf.train.Checkpoint(buffer=restored).restore(path).assert_consumed()
    for i in range(3):
        samples = []
        for b in (buffer, restored):
            b.add_batch(tf.constant([i, 100 + i], tf.int64))
            items, info = b.get_next(6, 2)
            b.update_priorities(info.keys, tf.cast(items[:, 0], tf.float32))
            samples.append(tf.nest.flatten((items, info)))
        for x, y in zip(*samples, strict=True):
            np.testing.assert_array_equal(x, y)


@pytest.mark.parametrize(
    "jit_compile", [pytest.param(True, marks=pytest.mark.slow), False]
)
def test_adding_drawing_and_updating_in_one_graph_loop(jit_compile):
    """Frames that were drawn get the priority 0: each is drawn once, as it enters."""
    buffer = _filled(1, 4, epsilon=0.0, seed=1)

    @tf.function(jit_compile=jit_compile)
    def loop(num_iterations):
        drawn = tf.TensorArray(tf.int64, 12, element_shape=[2])
        for i in tf.range(num_iterations):
            buffer.add_batch(tf.cast(i, tf.int64)[tf.newaxis])
            items, info = buffer.sample(2)
            buffer.update_priorities(info.keys, tf.zeros([2]))
            drawn = drawn.write(i, items)
        return drawn.stack()

    np.testing.assert_array_equal(
        loop(tf.constant(12)), np.arange(12)[:, None] + [0, 0]
    )
    loop(tf.constant(12))
    assert loop.experimental_get_tracing_count() == 1


def test_images_take_what_they_are_long_and_little_more():
    spec = {
        "image": tf.TensorSpec([84, 84, 4], tf.uint8),
        "reward": tf.TensorSpec([], tf.float32),
    }
    buffer = TFPrioritizedReplayBuffer(spec, batch_size=1, max_length=200)
    size = sum(v.dtype.size * v.shape.num_elements() for v in buffer.variables())
    raw = 200 * (84 * 84 * 4 + 4)
    assert raw < size < 1.01 * raw


def test_variables_are_all_that_changes():
    buffer = _filled(1, 4)
    names = [v.name for v in buffer.variables()]
    assert len(names) == len({id(v) for v in buffer.variables()}) == 6
    assert {"TFPrioritizedReplayBuffer/max_priority:0"} <= set(names)
