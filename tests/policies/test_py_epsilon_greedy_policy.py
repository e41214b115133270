"""Epsilon-greedy on arrays: rates, decay, masks, state."""

import numpy as np
import pytest

from tfrl.policies import py_epsilon_greedy_policy, py_policy, random_py_policy
from tfrl.specs import array_spec
from tfrl.trajectories import policy_step
from tfrl.trajectories import time_step as ts

ACTION = array_spec.BoundedArraySpec((), np.int32, 0, 9)
OBSERVATION = {
    "x": array_spec.ArraySpec((), np.float32),
    "mask": array_spec.ArraySpec((10,), np.int32),
}
COUNT = array_spec.ArraySpec((), np.int64)


def split(observation):
    return observation["x"], observation["mask"]


class Nine(py_policy.PyPolicy):
    """Acts with 9; its state, if it has one, counts."""

    def __init__(self, stateful=False, **kwargs):
        super().__init__(
            ts.time_step_spec(OBSERVATION),
            ACTION,
            policy_state_spec=COUNT if stateful else (),
            **kwargs,
        )

    def _action(self, time_step, policy_state, seed=None):
        self.last_seed = seed
        action = np.full(np.shape(time_step.step_type), 9, np.int32)
        state = () if isinstance(policy_state, tuple) else policy_state + 1
        return policy_step.PolicyStep(action, state)


def step(batch=None, mask=(1,) * 10):
    outer = () if batch is None else (batch,)
    observation = {
        "x": np.zeros(outer, np.float32),
        "mask": np.broadcast_to(np.array(mask, np.int32), (*outer, 10)),
    }
    return ts.restart(observation, batch_size=batch)


def make(epsilon, greedy=None, **kwargs):
    return py_epsilon_greedy_policy.EpsilonGreedyPolicy(
        greedy or Nine(), epsilon, **{"random_seed": 0, **kwargs}
    )


def test_epsilon_zero_is_greedy():
    np.testing.assert_array_equal(make(0.0).action(step(50)).action, [9] * 50)


def test_each_entry_explores_at_the_rate_of_epsilon():
    action = make(0.5).action(step(20000)).action
    frequencies = np.bincount(action, minlength=10) / 20000
    np.testing.assert_allclose(frequencies, [0.05] * 9 + [0.55], atol=0.01)
    assert action.dtype == np.int32


def test_single_steps_explore_at_the_rate_of_epsilon():
    policy = make(0.5)
    actions = [int(policy.action(step()).action) for _ in range(2000)]
    frequencies = np.bincount(actions, minlength=10) / 2000
    np.testing.assert_allclose(frequencies, [0.05] * 9 + [0.55], atol=0.04)


def test_epsilon_falls_linearly_with_the_calls():
    policy = make(0.5, epsilon_decay_end_count=4, epsilon_decay_end_value=0.1)
    seen = []
    for _ in range(6):
        policy.action(step())
        seen.append(policy._get_epsilon())
    np.testing.assert_allclose(seen, [0.5, 0.4, 0.3, 0.1, 0.1, 0.1], rtol=1e-6)


def test_exploration_honours_the_mask():
    greedy = Nine(observation_and_action_constraint_splitter=split)
    mask = (0, 1, 0, 1, 0, 0, 0, 0, 0, 0)
    action = make(1.0, greedy).action(step(500, mask)).action
    assert set(action) == {1, 3}


def test_the_state_is_the_greedy_policys_also_while_exploring():
    policy = make(1.0, Nine(stateful=True))
    state = policy.get_initial_state(3)
    np.testing.assert_array_equal(policy.action(step(3), state).state, [1, 1, 1])


def test_info_is_filled_in_while_exploring():
    class Informed(Nine):
        def _action(self, time_step, policy_state, seed=None):
            result = super()._action(time_step, policy_state, seed)
            return result._replace(info=np.zeros(len(result.action), np.float32))

    spec = array_spec.BoundedArraySpec((), np.float32, 5.0, 6.0)
    result = make(0.5, Informed(info_spec=spec)).action(step(500))
    explored = result.action != 9
    assert np.all(result.info[explored] >= 5.0)
    assert 150 < np.sum(result.info == 0.0) < 350


def test_a_random_policy_of_ones_own_is_used():
    class Three(random_py_policy.RandomPyPolicy):
        def _action(self, time_step, policy_state, seed=None):
            return policy_step.PolicyStep(np.int32(3))

    three = Three(None, ACTION)
    assert make(1.0, random_policy=three).action(step()).action == 3


def test_seeds_reproduce():
    def run(**kwargs):
        policy = make(0.5, **kwargs)
        return np.stack([policy.action(step(20)).action for _ in range(3)])

    np.testing.assert_array_equal(run(random_seed=1), run(random_seed=1))
    assert not np.array_equal(run(random_seed=1), run(random_seed=2))


def test_a_seed_argument_decides_alone():
    policy = make(0.5)
    first = policy.action(step(20), seed=3).action
    policy.action(step(20))
    np.testing.assert_array_equal(policy.action(step(20), seed=3).action, first)
    assert policy._greedy_policy.last_seed is not None


@pytest.mark.parametrize(
    ("kwargs", "text"),
    [
        ({"epsilon": 1.5}, r"epsilon: .* got 1\.5"),
        ({"epsilon_decay_end_count": 3}, r"epsilon_decay_end_value: got None"),
        (
            {"epsilon_decay_end_count": 3, "epsilon_decay_end_value": 0.5},
            r"epsilon_decay_end_value: got 0\.5, expected a number in \[0, 0\.5\)",
        ),
        (
            {"epsilon_decay_end_count": 0, "epsilon_decay_end_value": 0.1},
            r"epsilon_decay_end_count: .* got 0",
        ),
    ],
)
def test_numbers_out_of_range_are_errors(kwargs, text):
    with pytest.raises(ValueError, match=text):
        make(**{"epsilon": 0.5, **kwargs})
