import numpy as np
import pytest

from tfrl.environments import wrappers
from tfrl.specs import array_spec


def float_spec(shape=(1,), minimum=-2.0, maximum=2.0):
    return array_spec.BoundedArraySpec(
        shape, np.float32, minimum, maximum, name="action"
    )


def test_discretize_offers_evenly_spaced_actions(scripted):
    inner = scripted(float_spec())
    environment = wrappers.ActionDiscretizeWrapper(inner, num_actions=5)
    spec = environment.action_spec()
    assert (spec.shape, spec.dtype) == ((), np.int32)
    assert (spec.minimum, spec.maximum, spec.name) == (0, 4, "action")
    environment.reset()
    for action in range(5):
        environment.step(np.array(action))
        environment.reset()
    assert [a.tolist() for a in inner.actions] == [[-2.0], [-1.0], [0.0], [1.0], [2.0]]
    assert inner.actions[0].dtype == np.float32


def test_discretize_takes_a_number_of_actions_for_each_element(scripted):
    inner = scripted(float_spec((2,), [-1.0, 0.0], [1.0, 9.0]))
    environment = wrappers.ActionDiscretizeWrapper(inner, num_actions=[3, 4])
    assert environment.action_spec().maximum.tolist() == [2, 3]
    environment.reset()
    environment.step(np.array([1, 2]))
    assert inner.actions[0].tolist() == [0.0, 6.0]


def test_discretize_maps_a_batch(scripted, batch_of):
    members = [scripted(float_spec()), scripted(float_spec())]
    environment = wrappers.ActionDiscretizeWrapper(batch_of(*members), 3)
    environment.reset()
    environment.step(np.array([0, 2], np.int32))
    assert [member.actions[0].tolist() for member in members] == [[-2.0], [2.0]]


def test_discretize_keeps_a_nest_of_one(scripted):
    inner = scripted({"force": float_spec()})
    environment = wrappers.ActionDiscretizeWrapper(inner, 2)
    environment.reset()
    environment.step(np.array(1))
    assert inner.actions[0]["force"].tolist() == [2.0]


@pytest.mark.parametrize(
    ("spec", "num_actions", "message"),
    [
        (array_spec.BoundedArraySpec((), np.int32, 0, 1), 2, "expected a single"),
        (array_spec.ArraySpec((), np.float32), 2, "expected a single"),
        (array_spec.BoundedArraySpec((), np.float32), 2, "finite bounds"),
        ([float_spec(), float_spec()], 2, "expected a single"),
        (float_spec(), 1, "num_actions: got 1, expected at least 2"),
        (float_spec(), 2.5, "num_actions: got 2.5, expected at least 2 .*integer"),
        (float_spec((3,)), [2, 2], r"num_actions: got shape \(2,\)"),
    ],
)
def test_discretize_refuses_other_actions(scripted, spec, num_actions, message):
    with pytest.raises(ValueError, match=message):
        wrappers.ActionDiscretizeWrapper(scripted(spec), num_actions)


@pytest.mark.parametrize(
    ("action", "message"), [([0], "got shape"), (-1, "from 0 to 4"), (5, "from 0 to 4")]
)
def test_discretize_refuses_bad_actions(scripted, action, message):
    environment = wrappers.ActionDiscretizeWrapper(scripted(float_spec()), 5)
    environment.reset()
    with pytest.raises(ValueError, match=f"action: .*{message}"):
        environment.step(np.array(action))


def test_clip_brings_actions_into_the_bounds_of_each_spec(scripted):
    spec = {"a": float_spec((2,)), "b": array_spec.ArraySpec((), np.float32)}
    inner = scripted(spec)
    environment = wrappers.ActionClipWrapper(inner)
    environment.reset()
    environment.step({"a": np.array([-5.0, 1.0]), "b": np.float32(7.0)})
    assert inner.actions[0]["a"].tolist() == [-2.0, 1.0]
    assert inner.actions[0]["b"] == 7.0


def test_offset_makes_actions_start_at_zero(scripted):
    inner = scripted(array_spec.BoundedArraySpec((), np.int64, -1, 2, name="move"))
    environment = wrappers.ActionOffsetWrapper(inner)
    spec = environment.action_spec()
    assert (spec.minimum, spec.maximum, spec.name) == (0, 3, "move")
    environment.reset()
    environment.step(np.array(0))
    assert inner.actions == [-1]
    assert inner.actions[0].dtype == np.int64


@pytest.mark.parametrize(
    "spec",
    [
        float_spec(),
        array_spec.ArraySpec((), np.int32),
        [array_spec.BoundedArraySpec((), np.int32, 1, 2)],
    ],
)
def test_offset_refuses_other_actions(scripted, spec):
    with pytest.raises(
        ValueError, match=r"expected a single BoundedArraySpec of integ"
    ):
        wrappers.ActionOffsetWrapper(scripted(spec))


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int32, np.uint64])
def test_offset_keeps_the_dtype(scripted, dtype):
    inner = scripted(array_spec.BoundedArraySpec((2,), dtype, [3, 5], [5, 6]))
    environment = wrappers.ActionOffsetWrapper(inner)
    assert environment.action_spec().maximum.tolist() == [2, 1]
    assert environment.action_spec().dtype == dtype
    environment.reset()
    environment.step(np.array([2, 0], dtype))
    assert inner.actions[0].tolist() == [5, 5]
    assert inner.actions[0].dtype == dtype


def test_offset_takes_a_batch(scripted, batch_of):
    members = [
        scripted(array_spec.BoundedArraySpec((), np.int32, 5, 7)) for _ in "1234567"
    ]
    environment = wrappers.ActionOffsetWrapper(batch_of(*members))
    environment.reset()
    environment.step(np.array([0, 1, 2, 0, 1, 2, 0], np.int32))
    assert [m.actions[0] for m in members] == [5, 6, 7, 5, 6, 7, 5]


def test_offset_refuses_more_values_than_the_dtype_counts(scripted):
    with pytest.raises(ValueError, match="expected no more values than int8 can count"):
        wrappers.ActionOffsetWrapper(
            scripted(array_spec.BoundedArraySpec((), np.int8, -100, 100))
        )


@pytest.mark.parametrize("dtype", [np.uint8, np.int64, np.float16, np.float32])
def test_clip_gives_the_specs_dtype(scripted, dtype):
    inner = scripted(array_spec.BoundedArraySpec((3,), dtype, 1, 3))
    environment = wrappers.ActionClipWrapper(inner)
    environment.reset()
    kind = np.float64 if np.dtype(dtype).kind == "f" else np.int64
    environment.step(np.array([-5, 2, 700], kind))
    assert inner.actions[0].tolist() == [1, 2, 3]
    assert inner.actions[0].dtype == dtype


@pytest.mark.parametrize("size", [1, 7])
def test_clip_takes_a_batch(scripted, batch_of, size):
    members = [scripted({"a": float_spec()}) for _ in range(size)]
    environment = wrappers.ActionClipWrapper(batch_of(*members))
    environment.reset()
    environment.step({"a": np.full((size, 1), 9.0)})
    assert [m.actions[0]["a"].tolist() for m in members] == [[2.0]] * size


def test_clip_refuses_another_structure(scripted):
    environment = wrappers.ActionClipWrapper(scripted({"a": float_spec()}))
    environment.reset()
    with pytest.raises(
        ValueError, match=r"action: got .*expected the structure of the"
    ):
        environment.step({"b": 1.0})


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_discretize_gives_the_specs_dtype(scripted, dtype):
    inner = scripted(array_spec.BoundedArraySpec((), dtype, 0, 1))
    environment = wrappers.ActionDiscretizeWrapper(inner, 5)
    environment.reset()
    environment.step(3)
    assert inner.actions == [0.75]
    assert inner.actions[0].dtype == dtype
