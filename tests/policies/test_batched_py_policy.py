"""`BatchedPyPolicy`: one policy for each entry of the batch."""

import threading

import numpy as np
import pytest

from tfrl.policies import batched_py_policy, py_policy, random_py_policy
from tfrl.specs import array_spec
from tfrl.trajectories import policy_step
from tfrl.trajectories import time_step as ts

OBSERVATION = array_spec.ArraySpec((), np.float32)
ACTION = {"a": array_spec.BoundedArraySpec((2,), np.float32, -9, 9)}
STATE = array_spec.ArraySpec((), np.int64)


class Scaling(py_policy.PyPolicy):
    """Acts with a multiple of the observation and counts in its state."""

    def __init__(self, factor, state_spec=STATE, action_spec=ACTION):
        info_spec = array_spec.ArraySpec((), np.float32)
        super().__init__(
            ts.time_step_spec(OBSERVATION), action_spec, state_spec, info_spec
        )
        self._factor = factor
        self.threads = set()

    def _action(self, time_step, policy_state, seed=None):
        self.threads.add(threading.get_ident())
        self.last_seed = seed
        x = time_step.observation
        action = {"a": np.full(2, self._factor * x, np.float32)}
        state = () if isinstance(policy_state, tuple) else policy_state + 1
        return policy_step.PolicyStep(action, state, x)


def step(values):
    return ts.restart(np.array(values, np.float32), batch_size=len(values))


@pytest.mark.parametrize("multithreading", [True, False])
@pytest.mark.parametrize("num", [1, 7])
def test_each_policy_acts_on_its_entry(multithreading, num):
    policies = [Scaling(i + 1) for i in range(num)]
    policy = batched_py_policy.BatchedPyPolicy(policies, multithreading)
    state = policy.get_initial_state(batch_size=num)
    result = policy.action(step([1.0] * num), state)
    np.testing.assert_array_equal(result.action["a"][:, 0], np.arange(num) + 1)
    assert result.action["a"].shape == (num, 2)
    np.testing.assert_array_equal(result.state, [1] * num)
    np.testing.assert_array_equal(result.info, [1.0] * num)
    if not multithreading:
        assert policies[0].threads == {threading.get_ident()}


def test_arrays_in_place_of_time_steps_are_divided_among_the_policies():
    class OnArrays(Scaling):
        def _action(self, time_step, policy_state, seed=None):
            return super()._action(ts.restart(time_step), policy_state, seed)

    policy = batched_py_policy.BatchedPyPolicy([OnArrays(i, ()) for i in (1, 2)])
    result = policy.action(np.array([3.0, 4.0], np.float32))
    np.testing.assert_array_equal(result.action["a"], [[3, 3], [8, 8]])


def test_policies_without_state_need_none():
    policy = batched_py_policy.BatchedPyPolicy([Scaling(i, ()) for i in (1, 2)])
    assert policy.get_initial_state() == ()
    assert policy.action(step([1.0, 1.0])).state == ()


def test_a_seed_gives_each_policy_one_of_its_own():
    spec = ts.time_step_spec(OBSERVATION)
    policy = batched_py_policy.BatchedPyPolicy(
        [random_py_policy.RandomPyPolicy(spec, ACTION) for _ in range(3)]
    )
    first = policy.action(step([0.0] * 3), seed=4).action["a"]
    np.testing.assert_array_equal(
        policy.action(step([0.0] * 3), seed=4).action["a"], first
    )
    assert len(np.unique(first)) == 6


def test_an_error_in_a_policy_comes_out():
    class Failing(Scaling):
        def _action(self, time_step, policy_state, seed=None):
            raise KeyError("of the policy")

    policy = batched_py_policy.BatchedPyPolicy([Scaling(1, ()), Failing(1, ())])
    with pytest.raises(KeyError, match="of the policy"):
        policy.action(step([0.0, 0.0]))


def test_another_batch_size_is_an_error():
    policy = batched_py_policy.BatchedPyPolicy([Scaling(1, ()), Scaling(2, ())])
    with pytest.raises(ValueError, match=r"time_step: got 3 entries .* expected 2"):
        policy.action(step([0.0] * 3))
    with pytest.raises(ValueError, match=r"batch_size: got 3, expected 2"):
        policy.get_initial_state(3)


@pytest.mark.parametrize("policies", [[], Scaling(1)])
def test_policies_must_be_a_list_that_is_not_empty(policies):
    with pytest.raises(ValueError, match=r"policies: got .* expected a list or tuple"):
        batched_py_policy.BatchedPyPolicy(policies)


def test_policies_of_different_specs_are_refused():
    other = {"a": array_spec.BoundedArraySpec((2,), np.float32, -1, 1)}
    with pytest.raises(ValueError, match=r"action_spec of policy 1 is .*as in policy"):
        batched_py_policy.BatchedPyPolicy([Scaling(1), Scaling(1, action_spec=other)])
