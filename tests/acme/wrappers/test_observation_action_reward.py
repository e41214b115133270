import numpy as np
from dm_env import specs

from tests.acme.wrappers.scripted import Scripted, play
from tfrl.acme import wrappers
from tfrl.acme.wrappers import OAR


def test_observations_hold_the_action_and_the_reward_that_led_to_them():
    inner = Scripted([1.0, 2.0], action_spec=specs.DiscreteArray(4, np.int64))
    environment = wrappers.ObservationActionRewardWrapper(inner)
    first, middle, last, again = [t.observation for t in play(environment, 3, 3)]
    assert first == again == OAR(observation=0, action=0, reward=0)
    assert middle == OAR(observation=1, action=3, reward=1)
    assert last == OAR(observation=2, action=3, reward=2)
    assert middle.action.dtype == first.action.dtype == np.int64
    assert middle.reward.dtype == first.reward.dtype == np.float64


def test_specs_are_those_of_the_environment():
    inner = Scripted([1.0])
    environment = wrappers.ObservationActionRewardWrapper(inner)
    assert environment.observation_spec() == OAR(
        inner.observation_spec(), inner.action_spec(), inner.reward_spec()
    )


def test_the_first_action_conforms_to_a_spec_without_zero():
    spec = specs.BoundedArray((2,), np.float32, [1, 2], 3)
    environment = wrappers.ObservationActionRewardWrapper(
        Scripted([1.0], action_spec=spec)
    )
    assert environment.reset().observation.action.tolist() == [1, 2]
