import numpy as np
from dm_env import specs

from tests.acme.wrappers.scripted import Scripted, play
from tfrl.acme import wrappers

OBSERVATION = {
    "double": np.array([0.1, 0.2]),
    "long": np.int64(7),
    "byte": np.uint8(255),
    "text": np.array("a", object),
}


def make():
    return wrappers.SinglePrecisionWrapper(
        Scripted(
            rewards=[0.5, 0.25],
            observations=[OBSERVATION] * 3,
            observation_spec={
                "double": specs.BoundedArray((2,), np.float64, -np.inf, [0.1, 1e300]),
                "long": specs.BoundedArray((), np.int64, -(2**40), 2**40),
                "byte": specs.Array((), np.uint8, "byte"),
                "text": specs.StringArray(()),
            },
            action_spec=specs.BoundedArray((2,), np.float64, -1, 1, "action"),
        )
    )


def test_doubles_and_longs_become_singles_and_ints():
    first, middle, last = play(make(), 2, np.zeros(2, np.float32))
    for timestep in (first, middle, last):
        dtypes = {key: leaf.dtype for key, leaf in timestep.observation.items()}
        assert dtypes == {
            "double": np.float32,
            "long": np.int32,
            "byte": np.uint8,
            "text": object,
        }
    np.testing.assert_array_equal(
        middle.observation["double"], np.array([0.1, 0.2], np.float32)
    )
    assert (first.reward, first.discount) == (None, None)
    for value in (middle.reward, middle.discount, last.reward, last.discount):
        assert value.dtype == np.float32
    assert (middle.reward, middle.discount) == (0.5, 1)
    assert (last.reward, last.discount) == (0.25, 0)


def test_specs_follow_and_keep_bounds_that_fit():
    environment = make()
    spec = environment.observation_spec()
    assert spec["double"] == specs.BoundedArray(
        (2,), np.float32, -np.inf, [np.float32(0.1), np.inf]
    )
    limits = np.iinfo(np.int32)
    assert spec["long"] == specs.BoundedArray((), np.int32, limits.min, limits.max)
    assert spec["byte"] == specs.Array((), np.uint8)
    assert isinstance(spec["text"], specs.StringArray)
    assert environment.action_spec() == specs.BoundedArray((2,), np.float32, -1, 1)
    assert environment.action_spec().name == "action"
    assert environment.reward_spec() == specs.Array((), np.float32)
    assert environment.discount_spec() == specs.BoundedArray((), np.float32, 0, 1)


def test_discrete_actions_stay_discrete():
    inner = Scripted([1.0], action_spec=specs.DiscreteArray(3, np.int64))
    environment = wrappers.SinglePrecisionWrapper(inner)
    assert environment.action_spec() == specs.DiscreteArray(3, np.int32)
    play(environment, 1, np.int32(2))
    assert inner.actions == [2]
    assert inner.actions[0].dtype == np.int64
