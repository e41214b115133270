"""Items of trajectory writers on a real server; the expectations are Reverb's."""

import math

import numpy as np
import pytest

from tfrl.replay_service.trajectory_writer import TrajectoryColumn


def test_items_mix_columns_of_different_steps(client, filled):
    writer = filled(client, steps=5, keep=5)
    history = writer.history
    writer.create_item(
        "any",
        2.5,
        {
            "z": history["a"][0],
            "s": history["b"][[0, 3]],
            "t": (history["b"][1:4], history["b"][-1]),
        },
    )
    writer.flush()
    (sample,) = client.sample("any", emit_timesteps=False)
    assert sample.info.priority == 2.5
    assert [x.tolist() for x in sample.data] == [[0, 3], [1, 2, 3], 4, [0, 0, 0]]


def test_items_go_in_in_the_order_of_their_creation(client, drain):
    writer = client.trajectory_writer(3)
    expected = []
    for i in range(500):
        writer.append({"x": i})
        length = 1 + i % min(i + 1, 3)
        writer.create_item("any", 1.0, [writer.history["x"][-length:]])
        expected.append([list(range(i + 1 - length, i + 1))])
        if i % 100 == 99:
            writer.end_episode(clear_buffers=False)
    writer.flush()
    assert drain(client) == expected
    assert client.server_info()["any"].num_episodes == 0  # All have been sampled.


def test_steps_of_all_sizes_arrive(client):
    rng = np.random.default_rng(0)
    for shape, count in (((84, 84, 4), 200), ((1500, 1000), 5), ((), 1000)):
        writer = client.trajectory_writer(2)
        data = [rng.integers(0, 255, shape, np.uint8) for _ in range(count)]
        for i, value in enumerate(data):
            writer.append((value, i))
            writer.create_item("any", 1.0, [leaf[-1] for leaf in writer.history])
        writer.flush()
        seen = 0
        for sample in client.sample("any", count, emit_timesteps=False):
            np.testing.assert_array_equal(sample.data[0], data[seen])
            assert sample.data[1] == seen
            seen += 1
        assert seen == count


def test_trajectories_have_to_be_of_columns(client, drain, filled):
    writer = filled(client)
    column = writer.history["a"][-1:]
    for bad in (np.zeros(3), writer.history["a"], None):
        with pytest.raises(
            TypeError, match="All leaves of `trajectory` must be `TrajectoryColumn` but"
        ):
            writer.create_item("any", 1.0, {"x": column, "y": bad})
    for empty in ({}, {"x": writer.history["a"][3:3]}, [column, column[1:]]):
        with pytest.raises(ValueError, match="trajectory must not be empty"):
            writer.create_item("any", 1.0, empty)
    other = filled(client)
    with pytest.raises(ValueError, match="history of another writer"):
        other.create_item("any", 1.0, [column])
    assert isinstance(column, TrajectoryColumn)
    writer.create_item("any", 1.0, column)
    writer.flush()
    assert drain(client) == [[[[4, 4, 4]]]]


def test_priorities_have_to_be_finite_and_not_negative(client, filled):
    import tensorflow as tf

    writer = filled(client)
    item = [writer.history["b"][-1:]]
    with pytest.raises(ValueError, match="`priority` must not be nan"):
        writer.create_item("any", math.nan, item)
    for bad in (-1.0, math.inf, np.float32(-1)):
        with pytest.raises(ValueError, match="finite number that is at least 0, got"):
            writer.create_item("any", bad, item)
    with pytest.raises(TypeError, match="must be a number, got 'a'"):
        writer.create_item("any", "a", item)
    for good in (0.0, 2, np.float32(2), np.array([2.0]), tf.constant(2.0)):
        writer.create_item("any", good, item)
    writer.flush()
    priorities = [
        s.info.priority for s in client.sample("any", 5, emit_timesteps=False)
    ]
    assert priorities == [0, 2, 2, 2, 2]


def test_items_are_checked_against_tables_and_their_signatures(client, drain, filled):
    writer = filled(client)
    a, b = writer.history["a"], writer.history["b"]
    with pytest.raises(
        ValueError,
        match="Unable to create item in table 'nope' since the table could not be fo",
    ):
        writer.create_item("nope", 1.0, [a[-1]])
    start = (
        "Unable to create item in table 'pair' since the provided trajectory is "
        "inconsistent with the table signature. The "
    )
    for item, text in [
        (
            (a[-1:], b[-2:]),
            r"column 0 to be a float \[2,3\] tensor but got a float \[1,3\]",
        ),
        (
            (a[-1], b[-2:]),
            r"column 0 to be a float \[2,3\] tensor but got a float \[3\]",
        ),
        (
            (b[-2:], a[-2:]),
            r"column 0 to be a float \[2,3\] tensor but got a int64 \[2\]",
        ),
        ((a[-2:],), "trajectory has 1 columns but the table signature has 2 columns"),
    ]:
        with pytest.raises(ValueError, match=start + ".*" + text):
            writer.create_item("pair", 1.0, item)
    writer.create_item("pair", 1.0, {"x": a[-2:], "y": b[-2:]})
    writer.flush()
    assert drain(client, "pair") == [[[[3, 3, 3], [4, 4, 4]], [3, 4]]]


def test_many_steps_and_items_at_once_mix_with_single_ones(client, drain):
    writer = client.trajectory_writer(40)
    numbers = iter(range(1000))
    expected = []

    def steps(count):
        return [next(numbers) for _ in range(count)]

    for count in (1, 30, 2, 7, 0, 12):
        for number in steps(3):
            writer.append({"x": number})
            writer.create_item("any", 1.0, [writer.history["x"][-1:]])
            expected.append([[number]])
        writer.extend({"x": np.array(steps(count), np.int64)})
        last = len(writer.history["x"]) - 1
        shifts = np.array([2, 0, 1])
        column = writer.history["x"][[last - 3, last - 2]]
        writer.create_items("any", 1.0, [column, column[1]], shifts)
        expected += [[[last - 3 + s, last - 2 + s], last - 2 + s] for s in shifts]
        assert writer.history["x"][-3:].numpy().tolist() == [last - 2, last - 1, last]
    writer.flush()
    assert drain(client) == expected


def test_many_steps_have_to_fit(client, drain):
    writer = client.trajectory_writer(4)
    three = np.arange(3)
    writer.extend([three, three])
    for bad, message in (
        ([three], "a leaf of earlier steps is missing"),
        ([three, three[:2]], "of the same N, got the shapes"),
        ([three, np.float32(1)], "of the same N, got the shapes"),
        ([three, three.astype(np.float32)], "wrong dtype .* Got float but expected"),
        ([three, three[:, None]], "incompatible shape .* Got \\[1\\] which is"),
    ):
        with pytest.raises(ValueError, match=message):
            writer.extend(bad)
    assert len(writer.history[0]) == 3
    writer.append([3, 3])
    writer.append([4], partial_step=True)
    with pytest.raises(ValueError, match="the last step is open"):
        writer.extend([three, three])
    writer.append([None, 4])
    column = writer.history[0][-3:-1]
    for shifts in ([-2], [0, 2]):
        with pytest.raises(ValueError, match="the writer does not keep all steps"):
            writer.create_items("any", 1.0, [column], np.array(shifts))
    with pytest.raises(ValueError, match="finite number that is at least 0"):
        writer.create_items("any", -1.0, [column], np.array([0]))
    with pytest.raises(ValueError, match="trajectory must not be empty"):
        writer.create_items("any", 1.0, [column[2:]], np.array([0]))
    writer.create_items("any", 1.0, [column], np.array([-1, 1]))
    writer.flush()
    assert drain(client) == [[[1, 2]], [[3, 4]]]
