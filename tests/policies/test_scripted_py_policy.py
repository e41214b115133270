"""`ScriptedPyPolicy`: the script, its state, its checks."""

import numpy as np
import pytest

from tfrl.policies import scripted_py_policy
from tfrl.specs import array_spec
from tfrl.trajectories import time_step as ts

TIME_STEP = ts.time_step_spec(array_spec.ArraySpec((), np.float32))
ACTION = {
    "a": array_spec.BoundedArraySpec((2,), np.int32, -10, 10),
    "b": array_spec.BoundedArraySpec((), np.float32, 0.0, 1.0),
}


def make(*script):
    return scripted_py_policy.ScriptedPyPolicy(TIME_STEP, ACTION, list(script))


def act(policy, num):
    state, actions = policy.get_initial_state(), []
    for _ in range(num):
        result = policy.action(ts.restart(np.float32(0)), state)
        state = result.state
        actions.append(result.action)
    return actions, state


def test_each_action_is_taken_for_its_number_of_steps():
    policy = make(
        (1, {"a": [5, 2], "b": 0.5}),
        (0, {"a": [99, 99], "b": 9}),
        (2, {"a": np.array([1, 3]), "b": np.float32(1)}),
    )
    actions, state = act(policy, 3)
    np.testing.assert_array_equal([a["a"] for a in actions], [[5, 2], [1, 3], [1, 3]])
    np.testing.assert_array_equal([a["b"] for a in actions], [0.5, 1.0, 1.0])
    assert actions[0]["a"].dtype == np.int32
    assert actions[2]["b"].dtype == np.float32
    assert state == [2, 2]


def test_the_script_starts_anew_with_the_initial_state():
    policy = make((1, {"a": [1, 1], "b": 0}), (1, {"a": [2, 2], "b": 0}))
    act(policy, 2)
    np.testing.assert_array_equal(act(policy, 1)[0][0]["a"], [1, 1])
    # Without a state, too.
    first = policy.action(ts.restart(np.float32(0)))
    np.testing.assert_array_equal(first.action["a"], [1, 1])


def test_an_episode_longer_than_the_script_is_an_error():
    policy = make((2, {"a": [1, 1], "b": 0}))
    with pytest.raises(ValueError, match=r"longer than the script, whose 2 steps"):
        act(policy, 3)


@pytest.mark.parametrize(
    "action",
    [
        {"a": [11, 0], "b": 0},  # Out of bounds.
        {"a": [1, 2, 3], "b": 0},  # Of another shape.
        {"a": [1.5, 0], "b": 0},  # No integer.
        {"a": [1, 2]},  # Of another structure.
    ],
)
def test_an_action_that_does_not_fit_the_spec_is_an_error_at_once(action):
    with pytest.raises(ValueError, match=r"action at index 1 does not match action_s"):
        make((1, {"a": [1, 1], "b": 0}), (1, action))


def test_the_time_step_spec_may_be_left_out():
    spec = array_spec.BoundedArraySpec((), np.int32, 0, 3)
    policy = scripted_py_policy.ScriptedPyPolicy(None, spec, [(1, 2)])
    assert policy.action(ts.restart(np.float32(0))).action == 2
