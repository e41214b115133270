"""Acme's fakes, with the arguments that Acme's tests give them."""

import numpy as np
import pytest

from tfrl.acme import specs
from tfrl.acme.testing import fakes


def test_episodes_have_their_length_and_the_values_of_the_specs():
    environment = fakes.ContinuousEnvironment(
        action_dim=2, observation_dim=3, bounded=True, episode_length=4
    )
    assert (environment.action_spec().shape, environment.action_spec().minimum) == (
        (2,),
        -1,
    )
    action = np.zeros(2, np.float32)
    steps = [environment.step(action) for _ in range(7)]
    assert [int(step.step_type) for step in steps] == [0, 1, 1, 1, 2, 0, 1]
    assert steps[0].reward is None
    environment.reward_spec().validate(steps[4].reward)
    environment.discount_spec().validate(steps[4].discount)
    environment.observation_spec().validate(steps[4].observation)
    with pytest.raises(ValueError, match="shape"):
        environment.step(np.zeros(3, np.float32))


def test_without_a_length_no_episode_ends():
    environment = fakes.Environment(
        specs.make_environment_spec(fakes.ContinuousEnvironment(action_dim=0)),
        episode_length=0,
    )
    assert environment.action_spec().shape == ()
    steps = [environment.step(np.float32(0)) for _ in range(40)]
    assert {int(step.step_type) for step in steps[1:]} == {1}


def test_discrete_environments_have_numbers_in_any_nest():
    environment = fakes.DiscreteEnvironment(
        num_actions=18,
        num_observations=2,
        obs_shape=(84, 84, 4),
        obs_dtype=np.float32,
        episode_length=10,
    )
    assert environment.action_spec().num_values == 18
    assert environment.reset().observation.shape == (84, 84, 4)
    nested = fakes.NestedDiscreteEnvironment(num_observations={"a": 3, "b": 5})
    assert {k: s.maximum for k, s in nested.observation_spec().items()} == {
        "a": 2,
        "b": 4,
    }


def test_transitions_are_those_of_the_specs_again_and_again():
    environment = fakes.DiscreteEnvironment(num_actions=2, num_observations=4)
    for sample in fakes.transition_dataset(environment).batch(3).take(2):
        assert sample.info.key.shape == (3,)
        assert sample.data.observation.dtype == sample.data.action.dtype == "int32"
        assert sample.data.discount.numpy().tolist() == [0, 0, 0]
