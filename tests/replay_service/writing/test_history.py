"""The steps that writers keep, and their indexing; the expectations are Reverb's."""

import collections

import numpy as np
import pytest

Point = collections.namedtuple("Point", "x y")


# History: 5 steps, of which the last 3 are kept; the steps that each key gives.
_KEPT = {
    "last": (-1, 4),
    "by number": (2, 2),
    "newest by number": (4, 4),
    "last two": (slice(-2, None), [3, 4]),
    "all kept": (slice(-3, None), [2, 3, 4]),
    "from a number on": (slice(2, None), [2, 3, 4]),
    "up to the newest": (slice(2, 5), [2, 3, 4]),
    "beyond the end": (slice(4, 10), [4]),
    "without the last": (slice(-3, -1), [2, 3]),
    "all kept without the last": (slice(None, -1), [2, 3]),
    "all kept without two": (slice(None, -2), [2]),
    "all kept without themselves": (slice(None, -3), []),
    "kept up to a number": (slice(None, 4), [2, 3]),
    "up to the first": (slice(None, 0), []),
    "up to before the first": (slice(None, -9), []),
    "every other kept": (slice(None, -1, 2), [2]),
    "kept backwards": (slice(-1, None, -1), [4, 3, 2]),
    "kept backwards from a number": (slice(3, None, -1), [3, 2]),
    "every other kept backwards": (slice(-1, None, -2), [4, 2]),
    "mixed signs": (slice(-2, 4), [3]),
    "every other": (slice(-3, None, 2), [2, 4]),
    "backwards": (slice(-1, -4, -1), [4, 3, 2]),
    "nothing": (slice(3, 3), []),
    "list": ([2, 3], [2, 3]),
    "list from the end": ([-1, -3], [4, 2]),
    "list with one twice": ([-1, -1], [4, 4]),
    "numpy integer": (np.int64(-1), 4),
}


def test_history_is_indexed_like_a_list_of_all_steps(client, filled):
    writer = filled(client)
    history = writer.history["b"]
    assert len(history) == 5
    for name, (key, expected) in _KEPT.items():
        column = history[key]
        assert column.numpy().tolist() == expected if expected != [] else not column
        assert column.is_squeezed == isinstance(expected, int), name
        assert len(column) == (1 if column.is_squeezed else len(expected)), name
    wide = writer.history["a"]
    assert wide[-2:].shape == (2, 3)
    assert wide[-1].shape == (3,)
    assert wide[-1].dtype == np.float32
    assert wide[[2, 4]].numpy().tolist() == [[2, 2, 2], [4, 4, 4]]


@pytest.mark.parametrize(
    "key",
    [
        *(0, -5, -6, [1], [-6]),
        *(slice(None), slice(None, None, -1), slice(None, None, 2)),
        *(slice(-4, None), slice(0, 2), slice(-10, -1)),
        *(slice(None, 1), slice(None, -4), slice(1, None, -1), slice(-4, None, -1)),
    ],
    ids=str,
)
def test_steps_that_are_not_kept_cannot_be_referred_to(client, key, filled):
    writer = filled(client)
    with pytest.raises(
        ValueError,
        match=r"(?s)TrajectoryColumns cannot contain any None data references: "
        r"TrajectoryColumn at path \('b', .*\) got \[.*None.*num_keep_alive_refs",
    ):
        writer.history["b"][key]


# Before the first step is dropped, history is a list; `[-3:]` of 2 steps is an error.
_FULL = [slice(None), slice(None, -1), slice(None, None, -1), slice(-1, None, -1)]


@pytest.mark.parametrize("steps", [1, 2, 3])
@pytest.mark.parametrize("key", [*_FULL, slice(None, 1), slice(0, None), 0, -1, [-1]])
def test_all_steps_of_a_history_that_has_dropped_none_can_be_referred_to(
    client, filled, steps, key
):
    column = filled(client, steps=steps).history["b"][key]
    values = list(range(steps))
    expected = [values[i] for i in key] if isinstance(key, list) else values[key]
    assert list(column.steps) == np.ravel(expected).tolist()


def test_more_steps_than_there_are_cannot_be_referred_to(client, filled):
    writer = filled(client, steps=2)
    with pytest.raises(ValueError, match=r"got \[None, step 0, step 1\]"):
        writer.history["b"][-3:]


def test_keys_that_are_no_steps_are_refused(client, filled):
    history = filled(client).history["b"]
    with pytest.raises(IndexError, match="list index out of range"):
        history[5]
    for key in ("a", None, (1, 2), 1.5):
        with pytest.raises(TypeError, match="indices must be integers or slices"):
            history[key]


def test_columns_are_indexed_like_lists(client, filled):
    column = filled(client).history["b"][-3:]
    assert column[0].numpy() == 2
    assert column[0].is_squeezed
    assert column[1:].numpy().tolist() == [3, 4]
    assert column[[0, 2]].numpy().tolist() == [2, 4]
    assert [one.numpy().tolist() for one in column] == [2, 3, 4]
    with pytest.raises(IndexError):
        column[3]
    with pytest.raises(TypeError, match="TrajectoryColumn indices must be"):
        column["x"]


def test_history_needs_a_step(client):
    writer = client.trajectory_writer(3)
    with pytest.raises(
        RuntimeError,
        match="history cannot be accessed before `append` is called at least once",
    ):
        _ = writer.history
    writer.append({})
    with pytest.raises(RuntimeError, match="no step so far holds an array or a number"):
        _ = writer.history


def test_columns_expire_with_their_steps(client, drain, filled):
    writer = filled(client)
    column = writer.history["b"][-1:]
    for i in range(3):
        writer.append({"a": np.zeros(3, np.float32), "b": i})
    assert column.shape == (1,)
    with pytest.raises(RuntimeError, match="expired data references"):
        column.numpy()
    with pytest.raises(ValueError, match="column 1: Column contains expired CellRef"):
        writer.create_item("any", 1.0, [writer.history["a"][-1:], column])
    writer.create_item("any", 1.0, [writer.history["a"][-1:]])
    writer.end_episode()
    with pytest.raises(ValueError, match="expired"):
        writer.create_item("any", 1.0, [column])
    assert drain(client) == [[[[0, 0, 0]]]]


def test_new_leaves_have_none_in_earlier_steps(client, drain, filled):
    writer = filled(client, steps=2)
    before = writer.history
    writer.append({"b": 2, "c": {"d": 1.5}})
    assert list(before) == ["a", "b"]
    assert list(writer.history) == ["a", "b", "c"]
    assert [len(leaf) for leaf in before.values()] == [3, 3]
    assert len(writer.history["c"]["d"]) == 3
    assert writer.history["c"]["d"][-1:].numpy().tolist() == [1.5]
    with pytest.raises(ValueError, match=r"\('c', 'd', slice.* got \[None, step 2\]"):
        writer.history["c"]["d"][-2:]
    with pytest.raises(ValueError, match=r"\('a', -1\) got \[None\]"):
        writer.history["a"][-1]
    assert writer.history["a"][-3:-1].shape == (2, 3)
    writer.append({"a": None, "b": 3})
    assert writer.history["a"][-3:-2].shape == (1, 3)
    assert writer.episode_steps == 4
    # Steps from before the leaf was there go with those after.
    item = [writer.history["c"]["d"][-2], writer.history["b"][-3:]]
    writer.create_item("any", 1.0, item)
    writer.flush()
    assert drain(client) == [[1.5, [1, 2, 3]]]


def test_partial_steps_are_completed_by_the_next_call(client, drain):
    writer = client.trajectory_writer(3)
    writer.append({"a": 1, "b": 2}, partial_step=True)
    assert writer.episode_steps == 0
    assert len(writer.history["a"]) == 1
    writer.create_item("any", 1.0, [writer.history["a"][-1:]])
    with pytest.raises(
        ValueError,
        match=r"Field \('a',\) has already been set in the active step by previous "
        r"\(partial\) append call and thus must be omitted or set to None but got: 7",
    ):
        writer.append({"a": 7})
    writer.append({"a": None, "c": 3.0})
    assert writer.episode_steps == 1
    writer.append({"a": 4}, partial_step=True)
    writer.flush()  # Sends the last step's item.
    writer.create_item("any", 1.0, [writer.history["a"][-2:]])
    writer.flush()
    writer.append({"b": 5, "c": 6.0})
    writer.create_item("any", 1.0, {k: writer.history[k][-2:] for k in "abc"})
    assert [len(writer.history[k]) for k in "abc"] == [2, 2, 2]
    writer.flush()
    assert drain(client) == [[[1]], [[1, 4]], [[1, 4], [2, 5], [3.0, 6.0]]]


def test_an_episodes_end_clears_the_history_unless_told_otherwise(
    client, drain, filled
):
    writer = filled(client)
    writer.end_episode(clear_buffers=False)
    assert writer.episode_steps == 0
    writer.append({"a": np.full(3, 5, np.float32), "b": 5})
    assert writer.episode_steps == 1
    assert len(writer.history["b"]) == 6
    writer.create_item("any", 1.0, [writer.history["b"][-3:]])
    writer.append({"a": np.full(3, 6, np.float32), "b": 6}, partial_step=True)
    writer.end_episode()
    assert writer.episode_steps == 0
    assert len(writer.history["b"]) == 0
    with pytest.raises(ValueError, match=r"got \[None\]"):
        writer.history["b"][-1]
    writer.append({"a": np.full(3, 7, np.float32), "b": 7})
    assert writer.history["b"][0].numpy() == 7
    assert drain(client) == [[[3, 4, 5]]]


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (
            {"b": 1.5},
            r"wrong dtype provided for column \('b',\). Got double but exp.* int64",
        ),
        ({"a": np.zeros(3)}, r"column \('a',\). Got double but expected float\."),
        (
            {"a": np.zeros(4, np.float32)},
            r"Tensor of incompatible shape provided for column \('a',\). Got \[4\] "
            r"which is incompatible with \[3\]\.",
        ),
        ({"a": np.float32(1)}, r"Got \[\] which is incompatible with \[3\]"),
        ({"c": "text"}, r"Column \('c',\): Values of dtype <U4.*Encode text as uint8"),
        ({"c": Ellipsis}, r"Column \('c',\): Values of dtype object"),
        ({"b": [1, 2]}, r"append: got a list at path \('b',\), expected a leaf"),
    ],
    ids=str,
)
def test_data_that_does_not_fit_is_refused(client, data, expected, drain, filled):
    writer = filled(client)
    with pytest.raises(ValueError, match=expected):
        writer.append({"a": np.zeros(3, np.float32), "b": 1} | data)
    assert len(writer.history["b"]) == 5
    assert writer.episode_steps == 5
    writer.append({"a": np.full(3, 9, np.float32), "b": 9})
    writer.create_item("any", 1.0, {k: writer.history[k][-1] for k in "ab"})
    writer.flush()
    assert drain(client) == [[[9, 9, 9], 9]]


@pytest.mark.parametrize(
    "data",
    [
        3.0,
        (1, 2.0),
        [1, 2],
        Point(1, (2, {"z": 3})),
        {"o": Point(np.ones(2), [1, 2]), "p": {2: 1, 1: 2}},
        collections.OrderedDict(b=1, a=np.zeros((2, 2), np.uint8)),
    ],
    ids=str,
)
def test_history_has_the_structure_of_the_data(client, data, drain):
    import tree

    writer = client.trajectory_writer(2)
    for _ in range(3):
        writer.append(data)
    tree.assert_same_structure(writer.history, data)
    trajectory = tree.map_structure(lambda leaf: leaf[-1], writer.history)
    writer.create_item("any", 1.0, trajectory)
    writer.flush()
    expected = [np.asarray(leaf).tolist() for leaf in tree.flatten(data)]
    assert drain(client) == [expected]


def test_structures_may_alternate_and_grow(client):
    writer = client.trajectory_writer(4)
    writer.append(((1,), {"x": 1}))
    writer.append(((2, 20), {"x": 2, "y": Point(3, None)}))
    writer.append(((3,), {"x": 3}))
    writer.append(((4, 40), {"y": Point(None, 5)}))
    (one, two), rest = writer.history
    assert one[:].numpy().tolist() == [1, 2, 3, 4]
    assert two[[1, 3]].numpy().tolist() == [20, 40]
    assert rest["x"][:3].numpy().tolist() == [1, 2, 3]
    assert rest["y"].x[1].numpy() == 3
    assert rest["y"].y[-1].numpy() == 5


@pytest.mark.parametrize(
    ("value", "dtype"),
    [
        (True, "bool"),
        (np.bool_(1), "bool"),
        (2**40, "int64"),
        (1.5, "float64"),
        (1j, "complex128"),
        (np.float16(1), "float16"),
        (np.arange(10, dtype=np.uint16)[::3], "uint16"),
        (np.asfortranarray(np.arange(6.0).reshape(2, 3)), "float64"),
        (np.arange(3).astype(">i4"), "int32"),
        (np.zeros((0, 3)), "float64"),
    ],
    ids=str,
)
def test_leaves_keep_their_dtypes(client, value, dtype):
    writer = client.trajectory_writer(2)
    for _ in range(2):
        writer.append([value])
    column = writer.history[0][-1]
    assert column.dtype == np.dtype(dtype)
    np.testing.assert_array_equal(column.numpy(), np.asarray(value))


def test_eager_tensors_are_leaves(client):
    import tensorflow as tf

    writer = client.trajectory_writer(2)
    for i in range(2):
        writer.append({"x": tf.constant([i, 2.0]), "h": tf.constant(i, tf.bfloat16)})
    assert writer.history["x"][:].numpy().tolist() == [[0, 2], [1, 2]]
    assert writer.history["h"].__getitem__(-1).dtype.name == "bfloat16"


def test_data_is_copied_when_it_is_appended(client):
    writer = client.trajectory_writer(2)
    array = np.zeros(3)
    writer.append([array])
    array += 1
    assert writer.history[0][-1].numpy().tolist() == [0, 0, 0]


def test_configure_sets_what_one_leaf_keeps(client, drain):
    writer = client.trajectory_writer(2)
    with pytest.raises(
        ValueError, match=r"num_keep_alive_refs \(0\) must be a positive"
    ):
        writer.configure(("a",), num_keep_alive_refs=0, max_chunk_length=None)
    with pytest.raises(ValueError, match=r"max_chunk_length \(3\) must be None or a"):
        writer.configure(("a",), num_keep_alive_refs=2, max_chunk_length=3)
    writer.configure(("a",), num_keep_alive_refs=4, max_chunk_length=1)
    for i in range(600):
        writer.append({"a": i, "b": i})
        if i >= 3:
            writer.create_item(
                "any", 1.0, [writer.history["a"][-4:], writer.history["b"][-2:]]
            )
    with pytest.raises(ValueError, match="the last 2 are kept"):
        writer.history["b"][-3:]
    writer.configure(("b",), num_keep_alive_refs=1, max_chunk_length=None)
    with pytest.raises(ValueError, match="the last 1 are kept"):
        writer.history["b"][-2:]
    writer.flush()
    assert len(drain(client)) == 597
    with pytest.raises(
        ValueError, match=r"num_keep_alive_refs \(0\) must be a positive"
    ):
        client.trajectory_writer(0)
