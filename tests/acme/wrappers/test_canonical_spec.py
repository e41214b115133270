import numpy as np
import pytest
from dm_env import specs

from tests.acme.wrappers.scripted import Scripted
from tfrl.acme import wrappers

SPEC = specs.BoundedArray((3,), np.float32, [-2, 0, 0.1], [2, 10, 0.7], "torque")


def taken(action, spec=SPEC, clip=False):
    inner = Scripted([0.0] * 9, action_spec=spec)
    environment = wrappers.CanonicalSpecWrapper(inner, clip)
    environment.reset()
    environment.step(action)
    return inner.actions[0]


def test_the_spec_is_bounded_by_one():
    environment = wrappers.CanonicalSpecWrapper(Scripted([0.0], action_spec=SPEC))
    spec = environment.action_spec()
    assert spec == specs.BoundedArray((3,), np.float32, -np.ones(3), np.ones(3))
    assert spec.name == "torque"


def test_actions_are_mapped_to_the_bounds():
    np.testing.assert_allclose(taken([0.0, 0.5, -0.5]), [0, 7.5, 0.25], rtol=1e-6)
    # The ends are exact, so that they pass the bounds of the environment.
    np.testing.assert_array_equal(taken(np.ones(3)), SPEC.maximum)
    np.testing.assert_array_equal(taken(-np.ones(3)), SPEC.minimum)
    assert taken(np.ones(3)).dtype == np.float32


def test_actions_beyond_the_bounds_are_clipped_if_wanted():
    np.testing.assert_allclose(taken([2.0, 2.0, 0.0]), [4, 15, 0.4], rtol=1e-6)
    np.testing.assert_allclose(
        taken([2.0, -3.0, 0.0], clip=True), [2, 0, 0.4], rtol=1e-6
    )


def test_the_callers_action_does_not_change():
    action = np.array([3.0, 0.5, 0.5], np.float32)
    taken(action, clip=True)
    assert action.tolist() == [3, 0.5, 0.5]


def test_other_actions_of_a_nest_stay():
    spec = {
        "gear": specs.DiscreteArray(5),
        "force": specs.BoundedArray((), np.float64, 0.0, 100.0),
        "label": specs.Array((), np.float64),
    }
    environment = wrappers.CanonicalSpecWrapper(Scripted([0.0], action_spec=spec))
    assert environment.action_spec() == {
        **spec,
        "force": specs.BoundedArray((), np.float64, -1.0, 1.0),
    }
    action = taken({"gear": 3, "force": 0.0, "label": 7.0}, spec)
    assert action == {"gear": 3, "force": 50, "label": 7}


@pytest.mark.parametrize("bound", [np.inf, np.finfo(np.float32).max])
def test_infinite_bounds_are_refused(bound):
    spec = specs.BoundedArray((), np.float32, -bound, bound)
    with pytest.raises(ValueError, match="expected finite bounds"):
        wrappers.CanonicalSpecWrapper(Scripted([0.0], action_spec=spec))
