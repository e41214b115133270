"""Spaces of Gymnasium and specs there and back."""

import gymnasium
import numpy as np
import tree
from hypothesis import given
from hypothesis import strategies as st

from tests import properties
from tests.specs import drawn
from tfrl.specs import array_spec, gym_spaces

spaces = gymnasium.spaces
SHAPES = st.lists(st.integers(1, 3), max_size=2).map(tuple)


@st.composite
def boxes(draw):
    dtype = draw(
        st.sampled_from([np.float32, np.float64, np.uint8, np.int32, np.int64])
    )
    shape = draw(SHAPES)
    ends = [draw(properties.of_bits(dtype, shape)) for _ in range(2)]
    if np.issubdtype(dtype, np.floating):
        ends = [np.nan_to_num(x / 2, posinf=np.inf, neginf=-np.inf) for x in ends]
    return spaces.Box(np.minimum(*ends), np.maximum(*ends), shape, dtype)


def discrete(number, start, dtype):
    return spaces.Discrete(number, start=start, dtype=dtype)


LEAVES = st.one_of(
    boxes(),
    st.builds(
        discrete,
        st.integers(1, 100),
        st.integers(-100, 100),
        st.sampled_from([np.int64, np.int32]),
    ),
    st.lists(st.integers(1, 9), min_size=1, max_size=3).map(spaces.MultiDiscrete),
    st.builds(
        lambda pairs: spaces.MultiDiscrete(
            [n for n, _ in pairs], start=[start for _, start in pairs]
        ),
        st.lists(st.tuples(st.integers(1, 9), st.integers(-9, 9)), min_size=1),
    ),
    st.lists(st.integers(1, 3), min_size=1, max_size=2).map(spaces.MultiBinary),
)
SPACES = st.recursive(
    LEAVES,
    lambda inner: (
        st.lists(inner, min_size=1, max_size=3).map(spaces.Tuple)
        | st.dictionaries(drawn.KEYS, inner, min_size=1, max_size=3).map(spaces.Dict)
    ),
    max_leaves=4,
)


def bounds_of(space):
    """The least and the greatest values of each part of a space."""
    if isinstance(space, spaces.Tuple):
        return [pair for part in space for pair in bounds_of(part)]
    if isinstance(space, spaces.Dict):
        return [pair for key in sorted(space) for pair in bounds_of(space[key])]
    if isinstance(space, spaces.Discrete):
        return [(space.start, space.start + space.n - 1)]
    if isinstance(space, spaces.MultiDiscrete):
        return [(space.start, space.start + space.nvec - 1)]
    if isinstance(space, spaces.MultiBinary):
        return [(0, 1)]
    return [(space.low, space.high)]


def back_and_forth(spec):
    """The spec of the space of a spec, with the dtypes of the space."""
    space = gym_spaces.space_from_spec(spec)
    return gym_spaces.spec_from_gym_space(space, {spaces.MultiDiscrete: None})


@given(SPACES, st.integers(0, 99))
def test_elements_of_a_space_conform_to_its_spec(space, seed):
    spec = gym_spaces.spec_from_gym_space(space, name="observation")
    space.seed(seed)
    sample = tree.map_structure(
        lambda leaf, x: np.asarray(x).astype(leaf.dtype), spec, space.sample()
    )
    array_spec.assert_arrays_spec_nest(sample, spec)
    for leaf, (low, high) in zip(tree.flatten(spec), bounds_of(space), strict=True):
        most = leaf.replace(minimum=low, maximum=high)
        assert leaf == most  # Infinite bounds are the largest numbers.
    assert gym_spaces.space_from_spec(spec).contains(sample)
    assert tree.flatten(back_and_forth(spec)) == tree.flatten(spec)


@given(
    properties.nests(
        drawn.BOUNDED.filter(lambda x: 0 not in x.shape and x.dtype.kind in "biuf"),
        drawn.KEYS,
        may_be_empty=False,
    ),
    st.integers(0, 99),
)
def test_samples_of_a_spec_are_elements_of_its_space(nest, seed):
    sample = array_spec.sample_spec_nest(nest, np.random.default_rng(seed))
    space = gym_spaces.space_from_spec(nest)
    if isinstance(nest, array_spec.ArraySpec):
        assert space.contains(sample)
    assert tree.flatten(back_and_forth(nest)) == tree.flatten(nest)
