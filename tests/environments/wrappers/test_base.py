from unittest import mock

import gymnasium
import numpy as np
import pytest

from tests.environments.even import Even
from tfrl.environments import py_environment, wrappers


def step_types(environment, steps):
    return [int(environment.step(0).step_type) for _ in range(steps)]


def test_base_wrapper_hands_everything_on(scripted):
    inner = scripted()
    environment = wrappers.PyEnvironmentBaseWrapper(inner)
    environment.reset()
    environment.step(1)
    assert inner.actions == [1]
    assert environment.wrapped_env() is inner
    assert environment.get_info() == {"count": 1}
    assert environment.count == 1
    assert environment.time_step_spec() == inner.time_step_spec()
    assert not environment.batched
    assert environment.batch_size is None


def test_an_unknown_attribute_is_an_attribute_error(scripted):
    environment = wrappers.RunStats(wrappers.TimeLimit(scripted(), 2))
    with pytest.raises(AttributeError, match="no_such_thing"):
        environment.no_such_thing  # noqa: B018


@pytest.mark.parametrize("inner_resets", [True, False])
def test_the_wrapper_resets_where_the_environment_does_not(scripted, inner_resets):
    inner = scripted(length=2, handle_auto_reset=inner_resets)
    assert step_types(wrappers.PyEnvironmentBaseWrapper(inner), 5) == [0, 1, 2, 0, 1]


def test_the_environment_resets_where_the_wrapper_does_not(scripted):
    environment = wrappers.PyEnvironmentBaseWrapper(scripted(length=2), False)
    assert step_types(environment, 5) == [0, 1, 2, 0, 1]


def test_get_state_alone_continues_a_chain_in_another_object(scripted):
    def make():
        return wrappers.RunStats(wrappers.TimeLimit(scripted(length=7), 4))

    environment = make()
    step_types(environment, 4)
    state = environment.get_state()
    expected = step_types(environment, 6)
    resumed = make()
    resumed.set_state(state)
    assert step_types(resumed, 6) == expected == [2, 0, 1, 1, 1, 2]
    assert (resumed.episodes, resumed.total_steps) == (2, 8)


def test_set_state_goes_back_from_the_end_of_the_episode(scripted):
    environment = wrappers.TimeLimit(scripted(length=2), 5)
    step_types(environment, 2)
    state = environment.get_state()
    assert step_types(environment, 1) == [2]
    environment.set_state(state)
    assert step_types(environment, 2) == [2, 0]


def test_captured_state_continues_exactly(scripted):
    environment = wrappers.TimeLimit(scripted(length=7), 4)
    step_types(environment, 3)
    captured = py_environment.capture_state(environment)
    resumed = wrappers.TimeLimit(scripted(length=7), 4)
    py_environment.restore_state(resumed, captured)
    assert int(resumed.current_time_step().step_type) == 1
    assert step_types(resumed, 3) == [1, 2, 0]


def test_other_objects_than_py_environments_are_an_error():
    with pytest.raises(
        TypeError, match=r"env: got .* expected a PyEnvironment; wrap a Gymnasium"
    ):
        wrappers.TimeLimit(gymnasium.make("CartPole-v1"), 3)


def test_a_wrapped_bandit_plays_a_round_in_each_step(batch_of):
    def make():
        return wrappers.PyEnvironmentBaseWrapper(Even())

    environment = make()
    assert environment.is_bandit
    assert step_types(environment, 4) == [0, 2, 2, 2]
    batch = batch_of(make(), make())
    found = [batch.step(np.zeros(2, np.int32)).step_type.tolist() for _ in range(4)]
    assert found == [[0, 0], [2, 2], [2, 2], [2, 2]]


def test_a_mock_is_no_bandit(scripted):
    class Mocked(py_environment.PyEnvironment):
        is_bandit = mock.Mock()
        observation_spec = action_spec = _step = None
        _reset = scripted().reset

    last = scripted().reset()._replace(step_type=2)
    assert not wrappers.PyEnvironmentBaseWrapper(Mocked()).is_bandit
    assert Mocked().should_reset(last)
