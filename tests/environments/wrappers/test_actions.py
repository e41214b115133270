import itertools

import numpy as np
import pytest

from tfrl.environments import wrappers
from tfrl.specs import array_spec

INTEGERS = [np.int8, np.uint8, np.int16, np.int32, np.int64, np.uint64]


def integers(low=0, high=2, shape=(), dtype=np.int32):
    return array_spec.BoundedArraySpec(shape, dtype, low, high, name="move")


def floats(shape=(), low=-1.0, high=1.0, dtype=np.float32):
    return array_spec.BoundedArraySpec(shape, dtype, low, high, name="force")


def test_flatten_joins_the_actions_in_the_order_of_the_nest(scripted):
    inner = scripted({"b": floats((2, 2)), "a": floats(), "c": (floats((1,)),)})
    environment = wrappers.FlattenActionWrapper(inner)
    spec = environment.action_spec()
    assert (spec.shape, spec.dtype) == ((6,), np.float32)
    environment.reset()
    environment.step(np.array([0, 1, 2, 3, 4, 5], np.float32))
    (action,) = inner.actions
    assert action["a"] == 0
    assert action["b"].tolist() == [[1, 2], [3, 4]]
    assert action["c"][0].tolist() == [5]


def test_flatten_joins_the_bounds(scripted):
    inner = scripted([floats((2,), [-1, -2], [1, 2]), floats(), floats((2,), -5, 5)])
    spec = wrappers.FlattenActionWrapper(inner).action_spec()
    assert spec.minimum.tolist() == [-1, -2, -1, -5, -5]
    assert spec.maximum.tolist() == [1, 2, 1, 5, 5]


def test_flatten_has_no_bounds_where_an_action_has_none(scripted):
    inner = scripted([floats(), array_spec.ArraySpec((2,), np.float32)])
    spec = wrappers.FlattenActionWrapper(inner).action_spec()
    assert spec == array_spec.ArraySpec((3,), np.float32)
    assert not array_spec.is_bounded(spec)


def test_flatten_casts_to_the_dtype_of_each_action(scripted):
    inner = scripted([integers(0, 3), floats((2,))])
    environment = wrappers.FlattenActionWrapper(inner, flat_dtype=np.float64)
    assert environment.action_spec().dtype == np.float64
    environment.reset()
    environment.step([2.7, 0.5, -0.5])
    whole, fractions = inner.actions[0]
    assert (whole, whole.dtype) == (2, np.int32)
    assert (fractions.tolist(), fractions.dtype) == ([0.5, -0.5], np.float32)


@pytest.mark.parametrize("size", [1, 7])
def test_flatten_takes_a_batch(scripted, batch_of, size):
    members = [scripted([floats(), floats((2,))]) for _ in range(size)]
    environment = wrappers.FlattenActionWrapper(batch_of(*members))
    environment.reset()
    actions = np.arange(3 * size, dtype=np.float32).reshape(size, 3)
    environment.step(actions)
    for member, row in zip(members, actions, strict=True):
        first, rest = member.actions[0]
        assert [first, *rest] == row.tolist()


@pytest.mark.parametrize(
    ("spec", "flat_dtype", "message"),
    [
        ([], None, "env: got an environment without actions, expected at least one"),
        (
            [integers(), floats()],
            None,
            "env: got actions of dtypes float32, int32, exp",
        ),
        ([integers(0, 300)], np.int8, "flat_dtype: got int8, expected one that holds"),
    ],
)
def test_flatten_refuses_what_it_cannot_join(scripted, spec, flat_dtype, message):
    with pytest.raises(ValueError, match=message):
        wrappers.FlattenActionWrapper(scripted(spec), flat_dtype)


def test_flatten_refuses_an_action_of_another_shape(scripted):
    environment = wrappers.FlattenActionWrapper(scripted([floats(), floats()]))
    environment.reset()
    with pytest.raises(ValueError, match=r"action: got shape \(3,\), expected \(2,\)"):
        environment.step([1.0, 2.0, 3.0])


@pytest.mark.parametrize("dtype", INTEGERS)
def test_one_hot_means_the_largest_element(scripted, dtype):
    inner = scripted(integers(3, 5, dtype=dtype))
    environment = wrappers.OneHotActionWrapper(inner)
    spec = environment.action_spec()
    assert (spec.shape, spec.dtype) == ((3,), dtype)
    assert (spec.minimum, spec.maximum, spec.name) == (0, 1, "one_hot_action_spec")
    environment.reset()
    environment.step(np.array([0, 0, 1], dtype))
    assert inner.actions == [5]
    assert inner.actions[0].dtype == dtype


def test_one_hot_covers_the_whole_range_of_a_small_dtype(scripted):
    inner = scripted(integers(-128, 127, dtype=np.int8))
    environment = wrappers.OneHotActionWrapper(inner)
    environment.reset()
    environment.step(np.eye(256, dtype=np.int8)[200])
    assert inner.actions == [200 - 128]


def test_one_hot_leaves_floats_and_takes_a_vector_of_choices(scripted):
    inner = scripted({"choice": integers(0, 2, (2,)), "force": floats((3,))})
    environment = wrappers.OneHotActionWrapper(inner)
    assert environment.action_spec()["choice"].shape == (2, 3)
    assert environment.action_spec()["force"] == floats((3,))
    environment.reset()
    environment.step(
        {"choice": [[0, 1, 0], [1, 0, 0]], "force": np.float32([0.1, 0.2, 0.3])}
    )
    assert inner.actions[0]["choice"].tolist() == [1, 0]
    np.testing.assert_allclose(inner.actions[0]["force"], [0.1, 0.2, 0.3], rtol=1e-6)


@pytest.mark.parametrize("size", [1, 7])
def test_one_hot_takes_a_batch(scripted, batch_of, size):
    members = [scripted(integers(0, 6)) for _ in range(size)]
    environment = wrappers.OneHotActionWrapper(batch_of(*members))
    environment.reset()
    environment.step(np.eye(7, dtype=np.int32)[:size])
    assert [member.actions[0] for member in members] == list(range(size))


@pytest.mark.parametrize(
    "spec",
    [
        integers(0, 2, (2, 2)),
        integers(0, [1, 2], (2,)),
        array_spec.ArraySpec((), np.int32),
        array_spec.BoundedArraySpec((), np.int32),
    ],
)
def test_one_hot_refuses_actions_without_one_number_of_values(scripted, spec):
    with pytest.raises(
        ValueError, match=r"action_spec/x: got .*expected a BoundedArraySpec of at most"
    ):
        wrappers.OneHotActionWrapper(scripted({"x": spec}))


def test_one_hot_refuses_plain_actions_and_floats(scripted):
    environment = wrappers.OneHotActionWrapper(scripted())
    environment.reset()
    with pytest.raises(ValueError, match=r"action: got shape \(\), expected \(2,\)"):
        environment.step(1)
    with pytest.raises(TypeError, match=r"action: got dtype float64 with 0.2, exp"):
        environment.step([0.2, 0.8])


def test_enumerated_actions_are_the_product_of_the_parts(scripted):
    parts = {
        "b": (integers(5, 6, dtype=np.uint8),),
        "a": integers([-1, 0], [1, 1], (2,), np.int64),
    }
    inner = scripted(parts, length=100)
    environment = wrappers.EnumerateActionsWrapper(inner)
    spec = environment.action_spec()
    assert (spec.shape, spec.dtype, spec.minimum, spec.maximum) == ((), np.int32, 0, 11)
    environment.reset()
    for action in range(12):
        environment.step(np.int32(action))
    taken = [(*a["a"].tolist(), a["b"][0].tolist()) for a in inner.actions]
    assert taken == list(itertools.product([-1, 0, 1], [0, 1], [5, 6]))
    last = environment.inner_action(11)
    assert (last["a"].dtype, last["b"][0].dtype) == (np.int64, np.uint8)


@pytest.mark.parametrize("size", [1, 7])
def test_enumerated_actions_of_a_batch(scripted, batch_of, size):
    members = [scripted(integers(0, 1, (2, 2))) for _ in range(size)]
    environment = wrappers.EnumerateActionsWrapper(batch_of(*members))
    environment.reset()
    environment.step(np.arange(size, dtype=np.int32))
    for number, member in enumerate(members):
        bits = [int(bit) for bit in f"{number:04b}"]
        assert member.actions[0].ravel().tolist() == bits


def test_inner_actions_may_be_a_batch_of_any_size(scripted, batch_of):
    members = [scripted(integers(0, 1, (2,))) for _ in range(3)]
    environment = wrappers.EnumerateActionsWrapper(batch_of(*members))
    assert environment.inner_action(np.int32(2)).tolist() == [1, 0]
    assert environment.inner_action([0, 1]).tolist() == [[0, 0], [0, 1]]
    divided = wrappers.ActionDiscretizeWrapper(scripted(floats((1,))), 3)
    assert divided.inner_action(0).tolist() == [-1]
    assert divided.inner_action(np.array([0, 2])).tolist() == [[-1], [1]]
    with pytest.raises(TypeError, match="action: got dtype float64"):
        environment.inner_action(0.5)


def test_enumerated_actions_may_have_many_elements_of_one_value(scripted):
    inner = scripted(integers(3, np.repeat([3, 4], [99, 1]), (100,)))
    environment = wrappers.EnumerateActionsWrapper(inner, max_actions=2)
    environment.reset()
    environment.step(1)
    assert inner.actions[0].tolist() == [3] * 99 + [4]


@pytest.mark.parametrize(
    ("spec", "limit", "message"),
    [
        (
            integers(0, 1, (10,)),
            1023,
            "1,024 combinations, expected at most 1,023, .*P",
        ),
        (
            integers(-(2**63), 2**63 - 1, (9,), np.int64),
            5,
            r"than 10\^12 c.* at most 5, the",
        ),
        ([integers(), floats()], 9, "env: got the action spec .* train .* SAC.* PPO"),
        (array_spec.ArraySpec((), np.int32), 9, "BoundedArraySpecs of integers"),
        ({}, 9, "BoundedArraySpecs of integers"),
        (integers(), 0, "max_actions: .* got 0"),
    ],
)
def test_what_cannot_be_enumerated_is_refused(scripted, spec, limit, message):
    with pytest.raises(ValueError, match=message):
        wrappers.EnumerateActionsWrapper(scripted(spec), limit)


@pytest.mark.parametrize("action", [-1, 3])
def test_an_enumerated_action_out_of_bounds_is_refused(scripted, action):
    environment = wrappers.EnumerateActionsWrapper(scripted(integers(5, 7)))
    environment.reset()
    message = rf"action: got {action}, expected a number in \[0, 2\]"
    with pytest.raises(ValueError, match=message):
        environment.step(action)


@pytest.mark.parametrize("dtype", [np.float16, np.float64])
def test_float32_actions_are_cast_and_stay_in_bounds(scripted, dtype):
    # 0.1 in float32 is larger than in float64.
    inner = scripted({"a": floats((2,), -0.1, 0.1, dtype), "b": integers()})
    environment = wrappers.Float32ActionsWrapper(inner)
    spec = environment.action_spec()
    assert spec["a"].dtype == np.float32
    assert spec["a"].maximum == np.float32(dtype(0.1))
    assert spec["b"] is inner.action_spec()["b"]
    environment.reset()
    environment.step({"a": np.array([0.1, -0.05], np.float32), "b": np.int32(2)})
    action = inner.actions[0]["a"]
    assert action.dtype == dtype
    assert action[0] <= dtype(0.1)
    np.testing.assert_allclose(action, [0.1, -0.05], rtol=1e-3)
    assert inner.actions[0]["b"] == 2


def test_float32_actions_without_bounds_are_cast(scripted, batch_of):
    specs = (
        array_spec.ArraySpec((), np.float64),
        floats((), -np.inf, np.inf, np.float64),
    )
    members = [scripted(specs) for _ in range(2)]
    environment = wrappers.Float32ActionsWrapper(batch_of(*members))
    free, limited = environment.action_spec()
    assert (free, array_spec.is_bounded(free)) == (
        free.replace(dtype=np.float32),
        False,
    )
    assert limited.maximum == np.finfo(np.float32).max
    environment.reset()
    environment.step((np.float32([1, 2]), np.float32([3, 4e30])))
    assert [m.actions[0] for m in members] == [(1.0, 3.0), (2.0, np.float32(4e30))]


@pytest.mark.parametrize("dtype", INTEGERS)
def test_extra_actions_are_masked(scripted, dtype):
    inner = scripted(integers(1, 3, dtype=dtype))
    environment = wrappers.ExtraDisabledActionsWrapper(inner, 2)
    spec = environment.action_spec()
    assert (spec.minimum, spec.maximum, spec.dtype) == (1, 5, dtype)
    observation_spec, mask_spec = environment.observation_spec()
    assert observation_spec == inner.observation_spec()
    assert (mask_spec.shape, mask_spec.dtype) == ((5,), np.int64)
    time_steps = [environment.reset(), environment.step(np.array(3, dtype))]
    for count, time_step in enumerate(time_steps):
        observation, mask = time_step.observation
        assert observation == count
        assert mask.tolist() == [1, 1, 1, 0, 0]
        assert mask.dtype == np.int64


@pytest.mark.parametrize("size", [1, 7])
def test_extra_actions_are_masked_for_each_member(scripted, batch_of, size):
    members = [scripted() for _ in range(size)]
    environment = wrappers.ExtraDisabledActionsWrapper(batch_of(*members), 1)
    observation, mask = environment.reset().observation
    assert observation.shape == (size,)
    assert mask.tolist() == [[1, 1, 0]] * size


def test_taking_an_extra_action_is_an_error(scripted):
    environment = wrappers.ExtraDisabledActionsWrapper(scripted(), 2)
    environment.reset()
    with pytest.raises(ValueError, match=r"action: got 2, expected at most 1, .*mask"):
        environment.step(2)


@pytest.mark.parametrize(
    ("spec", "extra", "message"),
    [
        (floats(), 1, "env: got the action spec .* of one integer"),
        ([integers()], 1, "env: got the action spec .* of one integer"),
        (integers(0, 1, (2,)), 1, "env: got the action spec .* of one integer"),
        (
            integers(),
            -1,
            r"num_extra_actions: .* got -1",
        ),
        (integers(0, 250, dtype=np.uint8), 6, "got 6, expected at most 5, so that uin"),
    ],
)
def test_extra_actions_are_checked(scripted, spec, extra, message):
    with pytest.raises(ValueError, match=message):
        wrappers.ExtraDisabledActionsWrapper(scripted(spec), extra)


def force(shape=(1,), minimum=-2.0, maximum=2.0):
    return floats(shape, minimum, maximum)


def test_discretize_offers_evenly_spaced_actions(scripted):
    inner = scripted(force())
    environment = wrappers.ActionDiscretizeWrapper(inner, num_actions=5)
    spec = environment.action_spec()
    assert (spec.shape, spec.dtype) == ((), np.int32)
    assert (spec.minimum, spec.maximum, spec.name) == (0, 4, "force")
    environment.reset()
    for action in range(5):
        environment.step(np.array(action))
        environment.reset()
    assert [a.tolist() for a in inner.actions] == [[-2.0], [-1.0], [0.0], [1.0], [2.0]]
    assert inner.actions[0].dtype == np.float32


def test_discretize_takes_a_number_of_actions_for_each_element(scripted):
    inner = scripted(force((2,), [-1.0, 0.0], [1.0, 9.0]))
    environment = wrappers.ActionDiscretizeWrapper(inner, num_actions=[3, 4])
    assert environment.action_spec().maximum.tolist() == [2, 3]
    environment.reset()
    environment.step(np.array([1, 2]))
    assert inner.actions[0].tolist() == [0.0, 6.0]


def test_discretize_maps_a_batch(scripted, batch_of):
    members = [scripted(force()), scripted(force())]
    environment = wrappers.ActionDiscretizeWrapper(batch_of(*members), 3)
    environment.reset()
    environment.step(np.array([0, 2], np.int32))
    assert [member.actions[0].tolist() for member in members] == [[-2.0], [2.0]]


def test_discretize_keeps_a_nest_of_one(scripted):
    inner = scripted({"force": force()})
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
        ([force(), force()], 2, "expected a single"),
        (force(), 1, "num_actions: got 1, expected at least 2"),
        (force(), 2.5, "num_actions: got 2.5, expected at least 2 .*integer"),
        (force((3,)), [2, 2], r"num_actions: got shape \(2,\)"),
    ],
)
def test_discretize_refuses_other_actions(scripted, spec, num_actions, message):
    with pytest.raises(ValueError, match=message):
        wrappers.ActionDiscretizeWrapper(scripted(spec), num_actions)


@pytest.mark.parametrize(
    ("action", "message"),
    [
        ([0], "got shape"),
        (-1, r"got -1, .* in \[0, 4\]"),
        (5, r"got 5, .* in \[0, 4\]"),
    ],
)
def test_discretize_refuses_bad_actions(scripted, action, message):
    environment = wrappers.ActionDiscretizeWrapper(scripted(force()), 5)
    environment.reset()
    with pytest.raises(ValueError, match=f"action: .*{message}"):
        environment.step(np.array(action))


def test_clip_brings_actions_into_the_bounds_of_each_spec(scripted):
    spec = {"a": force((2,)), "b": array_spec.ArraySpec((), np.float32)}
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
        force(),
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
    members = [scripted({"a": force()}) for _ in range(size)]
    environment = wrappers.ActionClipWrapper(batch_of(*members))
    environment.reset()
    environment.step({"a": np.full((size, 1), 9.0)})
    assert [m.actions[0]["a"].tolist() for m in members] == [[2.0]] * size


def test_clip_refuses_another_structure(scripted):
    environment = wrappers.ActionClipWrapper(scripted({"a": force()}))
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


def test_offset_takes_no_fractions(scripted):
    environment = wrappers.ActionOffsetWrapper(scripted(integers(2, 4)))
    environment.reset()
    with pytest.raises(TypeError, match="action: got dtype float64"):
        environment.step(1.9)
