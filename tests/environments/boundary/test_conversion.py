"""The kinds of environments, by which their settings are chosen."""

import types

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

from tfrl.environments import suite_gym
from tfrl.environments.boundary import conversion

LARGE = "continuous control beyond classic size"


def numbers(*shape, dtype=np.float32):
    return spaces.Box(-1, 1, shape, dtype)


@pytest.mark.parametrize(
    ("observation", "action", "kind"),
    [
        (numbers(17), numbers(6), LARGE),
        (numbers(5), numbers(1), LARGE),
        (numbers(2), numbers(2), LARGE),
        (numbers(11, dtype=np.float64), numbers(3, dtype=np.float64), LARGE),
        (spaces.Dict(a=numbers(3), b=spaces.Tuple([numbers(2)])), numbers(1), LARGE),
        (numbers(4), spaces.Dict(a=numbers(1), b=numbers(1)), LARGE),
        (numbers(4), numbers(1), None),  # As large as CartPole's and Pendulum's.
        (numbers(2), numbers(), None),
        (numbers(17), spaces.Discrete(6), None),
        (numbers(17), spaces.MultiBinary(6), None),
        (numbers(17), spaces.Dict(a=numbers(6), b=spaces.Discrete(2)), None),
        (spaces.Discrete(500), numbers(6), None),
        (numbers(40, 40, 3), numbers(6), None),
        (spaces.Text(9), numbers(6), None),
    ],
)
def test_the_kind_goes_by_the_numbers_to_see_and_to_choose(observation, action, kind):
    made = types.SimpleNamespace(observation_space=observation, action_space=action)
    assert conversion.kind_of(made) == kind
    vector = types.SimpleNamespace(
        single_observation_space=observation, single_action_space=action
    )
    assert conversion.kind_of(vector) == kind


def test_specs_have_the_kind_of_their_spaces():
    assert conversion.kind_of(suite_gym.load("Pendulum-v1")) is None
    assert conversion.kind_of(gymnasium.make("Pendulum-v1")) is None
    large = gymnasium.wrappers.TransformObservation(
        gymnasium.make("Pendulum-v1"), lambda x: np.tile(x, 2), numbers(6)
    )
    assert conversion.kind_of(suite_gym.wrap_env(large)) == LARGE
