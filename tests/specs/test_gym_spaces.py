import re

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

from tfrl.specs import array_spec
from tfrl.specs.array_spec import ArraySpec, BoundedArraySpec
from tfrl.specs.gym_spaces import space_from_spec, spec_from_gym_space


def test_discrete_is_int64_from_zero():
    spec = spec_from_gym_space(spaces.Discrete(3), name="action")
    assert spec == BoundedArraySpec((), np.int64, 0, 2)
    assert spec.name == "action"


def test_discrete_honours_its_start():
    spec = spec_from_gym_space(spaces.Discrete(3, start=-1))
    assert spec == BoundedArraySpec((), np.int64, -1, 1)
    assert spec.num_values == 3


def test_multi_discrete_is_int32():
    spec = spec_from_gym_space(spaces.MultiDiscrete([2, 3]))
    assert spec == BoundedArraySpec((2,), np.int32, 0, [1, 2])
    same = spec_from_gym_space(spaces.MultiDiscrete([4, 4]))
    assert same.maximum.shape == ()


def test_multi_discrete_honours_its_start():
    spec = spec_from_gym_space(spaces.MultiDiscrete([2, 3], start=[5, -1]))
    assert spec == BoundedArraySpec((2,), np.int32, [5, -1], [6, 1])


def test_multi_discrete_may_have_several_dimensions():
    spec = spec_from_gym_space(spaces.MultiDiscrete([[2, 3], [4, 5]]))
    assert spec == BoundedArraySpec((2, 2), np.int32, 0, [[1, 2], [3, 4]])


@pytest.mark.parametrize(("n", "shape"), [(4, (4,)), ([2, 3], (2, 3))])
def test_multi_binary_is_int32(n, shape):
    spec = spec_from_gym_space(spaces.MultiBinary(n))
    assert spec == BoundedArraySpec(shape, np.int32, 0, 1)


def test_box_keeps_dtype_and_bounds():
    space = spaces.Box(np.array([-1, 0]), np.array([1, 2]), dtype=np.float64)
    spec = spec_from_gym_space(space)
    assert spec == BoundedArraySpec((2,), np.float64, [-1, 0], [1, 2])


def test_box_bounds_simplify_together_or_not_at_all():
    both = spaces.Box(-1, 1, (3,))
    one = spaces.Box(np.zeros(3, np.float32), np.array([1, 2, 3], np.float32))
    assert spec_from_gym_space(both).minimum.shape == ()
    assert spec_from_gym_space(both, simplify_box_bounds=False).minimum.shape == (3,)
    assert spec_from_gym_space(one).minimum.shape == (3,)


def test_infinite_box_bounds_become_finite():
    spec = spec_from_gym_space(spaces.Box(-np.inf, np.inf, (2,)))
    assert spec == BoundedArraySpec((2,), np.float32)


def test_empty_box():
    assert spec_from_gym_space(spaces.Box(0, 1, (0,))).shape == (0,)


def test_cartpole():
    env = gymnasium.make("CartPole-v1")
    spec = spec_from_gym_space(env.observation_space, name="observation")
    limit = np.finfo(np.float32).max
    np.testing.assert_array_equal(
        spec.maximum, np.array([4.8, limit, 0.41887903, limit], np.float32)
    )
    assert (spec.shape, spec.dtype, spec.name) == ((4,), np.float32, "observation")


def test_dtype_map_overrides_by_kind_of_space():
    dtype_map = {
        spaces.Box: np.float32,
        spaces.Discrete: np.int32,
        spaces.MultiDiscrete: np.int64,
        spaces.MultiBinary: np.bool_,
    }
    space = spaces.Tuple(
        (
            spaces.Box(-np.inf, 1, (2,), np.float64),
            spaces.Discrete(2),
            spaces.MultiDiscrete([2, 3]),
            spaces.MultiBinary(2),
        )
    )
    assert spec_from_gym_space(space, dtype_map) == (
        BoundedArraySpec((2,), np.float32, -np.inf, 1),
        BoundedArraySpec((), np.int32, 0, 1),
        BoundedArraySpec((2,), np.int64, 0, [1, 2]),
        BoundedArraySpec((2,), np.bool_),
    )


def test_none_in_a_dtype_map_keeps_the_dtype():
    space = spaces.Tuple((spaces.MultiDiscrete([2, 2]), spaces.MultiBinary(2)))
    dtype_map = {spaces.MultiDiscrete: None, spaces.MultiBinary: None}
    specs = spec_from_gym_space(space, dtype_map)
    assert [spec.dtype for spec in specs] == [np.int64, np.int8]


def test_nested_spaces_are_named_by_path():
    inner = spaces.Dict(spec_1=spaces.Discrete(2))
    space = spaces.Tuple((spaces.Dict(spec_0=inner), spaces.Discrete(3)))
    spec = spec_from_gym_space(space, name="observation")
    assert spec == (
        {"spec_0": {"spec_1": BoundedArraySpec((), np.int64, 0, 1)}},
        BoundedArraySpec((), np.int64, 0, 2),
    )
    assert spec[0]["spec_0"]["spec_1"].name == "observation/tuple_0/spec_0/spec_1"
    assert spec[1].name == "observation/tuple_1"


def test_nested_names_without_a_name_begin_with_the_key():
    spec = spec_from_gym_space(spaces.Dict(a=spaces.Tuple((spaces.Discrete(2),))))
    assert spec["a"][0].name == "a/tuple_0"


def test_subclasses_of_spaces_are_their_kind():
    class Switch(spaces.Discrete):
        pass

    spec = spec_from_gym_space(Switch(2), {spaces.Discrete: np.int32})
    assert spec == BoundedArraySpec((), np.int32, 0, 1)


def test_unknown_spaces_are_named():
    space = spaces.Dict(words=spaces.Sequence(spaces.Discrete(2)))
    with pytest.raises(ValueError, match=r"observation/words: got the space Sequence"):
        spec_from_gym_space(space, name="observation")


class Mission(spaces.Space):
    """A space of texts, as MiniGrid defines one."""

    def __init__(self):
        super().__init__(dtype=str)


@pytest.mark.parametrize(
    ("space", "reason"),
    [
        (spaces.Text(5), "Text, whose elements are texts"),
        (Mission(), "Mission, whose elements are texts"),
        (spaces.Sequence(spaces.Discrete(2)), "Sequence, .* different lengths"),
        (spaces.Graph(spaces.Box(0, 1), None), "Graph, .* numbers of nodes"),
        (spaces.OneOf((spaces.Discrete(2),)), "OneOf, .* one of several spaces"),
        (spaces.Space(), "Space.* expected Gymnasium's Box, Discrete"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_has_no_spec_is_refused_with_a_remedy(space, reason):
    for name, inner, remedy in (
        ("observation", space, "; turn it into an array with .*TransformObservation"),
        ("observation", {"a": space}, "leave it out with .*FilterObservation, or turn"),
        ("action", space, "wrap the environment with .*TransformAction"),
    ):
        where = name if inner is space else f"{name}/a"
        space_given = inner if inner is space else spaces.Dict(inner)
        with pytest.raises(ValueError, match=f"^{where}: got the space .*") as error:
            spec_from_gym_space(space_given, name=name)
        assert re.search(f"{reason}.*{remedy}", str(error.value))


@pytest.mark.parametrize(
    "space",
    [
        spaces.Discrete(4),
        spaces.Discrete(4, start=2),
        spaces.MultiDiscrete([3, 4], start=[0, 5], dtype=np.int32),
        spaces.Box(-np.inf, np.inf, (3,)),
        spaces.Box(np.array([-1, -np.inf]), np.array([np.inf, 2]), dtype=np.float64),
        spaces.Box(0, 255, (8, 8, 3), np.uint8),
        spaces.Dict(
            a=spaces.Tuple((spaces.Discrete(2), spaces.Box(0, 1))),
            b=spaces.Box(0, 1, (2,)),
        ),
    ],
)
def test_space_survives_the_round_trip(space):
    assert space_from_spec(spec_from_gym_space(space)) == space


def test_samples_of_the_space_conform_to_the_spec():
    space = spaces.Dict(
        a=spaces.Discrete(4, start=2),
        b=spaces.Box(-2, 3, (2,)),
        c=spaces.MultiDiscrete([3, 4]),
        d=spaces.MultiBinary(3),
    )
    dtypes = {spaces.MultiDiscrete: np.int64, spaces.MultiBinary: np.int8}
    spec = spec_from_gym_space(space, dtypes)
    space.seed(0)
    for _ in range(10):
        array_spec.assert_arrays_spec_nest(space.sample(), spec)


def test_samples_of_the_spec_are_in_the_space():
    spec = {
        "a": BoundedArraySpec((), np.int32, 2, 5),
        "b": [ArraySpec((2,), np.float32), BoundedArraySpec((2,), np.int64, 0, [1, 2])],
        "c": ArraySpec((), np.int64),
        "d": ArraySpec((2,), np.bool_),
    }
    space = space_from_spec(spec)
    assert isinstance(space["b"][1], spaces.MultiDiscrete)
    rng = np.random.default_rng(0)
    for _ in range(10):
        sample = array_spec.sample_spec_nest(spec, rng)
        sample["b"] = tuple(sample["b"])
        assert space.contains(sample)


def test_specs_without_a_space_are_named():
    with pytest.raises(ValueError, match=r"spec: got ArraySpec.* expected ArraySpecs"):
        space_from_spec(ArraySpec((), "U3"))
    with pytest.raises(ValueError, match=r"spec: got 3 of type int"):
        space_from_spec({"a": 3})
