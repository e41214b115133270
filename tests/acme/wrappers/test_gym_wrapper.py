import json

import dm_env
import gymnasium
import numpy as np
import pytest
from absl.testing import absltest
from dm_env import specs, test_utils

from tests.acme.wrappers.scripted import play, step_types
from tfrl.acme import wrappers
from tfrl.acme.wrappers import gym_wrapper


class Ending(gymnasium.Env):
    """Ends after two steps, as its constructor says."""

    observation_space = gymnasium.spaces.Dict(
        {
            "position": gymnasium.spaces.Box(-1, np.array([1, 2]), (2,), np.float64),
            "choices": gymnasium.spaces.Tuple(
                (gymnasium.spaces.MultiBinary(2), gymnasium.spaces.Discrete(3))
            ),
        }
    )
    action_space = gymnasium.spaces.Discrete(3, start=5)

    def __init__(self, terminated, truncated):
        self._ends = terminated, truncated

    def _observation(self):
        return {"position": np.zeros(2), "choices": (np.array([0, 1], np.int8), 2)}

    def reset(self, *, seed=None, options=None):
        self.seed_given = seed
        self._steps = 0
        return self._observation(), {"steps": 0}

    def step(self, action):
        assert 5 <= action < 8
        self._steps += 1
        ends = self._ends if self._steps == 2 else (False, False)
        return self._observation(), 1.5, *ends, {"steps": self._steps}


@pytest.mark.parametrize(
    ("terminated", "truncated", "discount"),
    [(True, False, 0), (False, True, 1), (True, True, 0)],
)
def test_ends_of_gymnasium_become_those_of_dm_env(terminated, truncated, discount):
    environment = wrappers.GymWrapper(Ending(terminated, truncated))
    timesteps = play(environment, 3, action=5)
    assert step_types(timesteps) == "FMLF"
    assert [t.discount for t in timesteps] == [None, 1, discount, None]
    assert [t.reward for t in timesteps] == [None, 1.5, 1.5, None]
    assert isinstance(timesteps[2], dm_env.TimeStep)


def test_spaces_become_specs():
    environment = wrappers.GymWrapper(Ending(True, False))
    spec = environment.observation_spec()
    assert spec["position"] == specs.BoundedArray((2,), np.float64, [-1, -1], [1, 2])
    binary, discrete = spec["choices"]
    assert binary == specs.BoundedArray((2,), np.int8, [0, 0], [1, 1])
    assert discrete == specs.DiscreteArray(3, np.int64)
    # Not a DiscreteArray, because that would begin at 0.
    assert environment.action_spec() == specs.BoundedArray((), np.int64, 5, 7)
    assert type(environment.action_spec()) is specs.BoundedArray


def test_arrays_of_choices_keep_their_dtypes():
    class Choosing(Ending):
        action_space = gymnasium.spaces.MultiDiscrete([2, 3])

        def step(self, action):
            return super().step(5 + action.sum())

    environment = wrappers.GymWrapper(Choosing(True, False))
    spec = environment.action_spec()
    assert spec == specs.BoundedArray((2,), np.int64, [0, 0], [1, 2])
    # NumPy makes int64 of a list of numbers.
    spec.validate([1, 2])
    observation = play(environment, 1, spec.generate_value())[-1].observation
    assert observation["choices"][0].dtype == np.int8


def test_rewards_and_discounts_are_numbers_of_double_precision():
    class Fractional(Ending):
        def step(self, action):
            observation, _, *rest = super().step(action)
            return observation, 0.1, *rest

    environment = wrappers.GymWrapper(Fractional(True, False))
    assert environment.reward_spec() == specs.Array((), np.float64, "reward")
    assert environment.discount_spec() == specs.BoundedArray(
        (), np.float64, 0, 1, "discount"
    )
    step = play(environment, 2, action=5)[1]
    assert json.dumps([step.reward, step.discount]) == "[0.1, 1.0]"
    environment.reward_spec().validate(step.reward)
    environment.discount_spec().validate(step.discount)


class DmEnvsOwnSuiteTest(test_utils.EnvironmentTestMixin, absltest.TestCase):
    def make_object_under_test(self):
        return wrappers.GymWrapper(Ending(False, True))


def test_the_environment_and_its_info_can_be_had():
    inner = Ending(True, False)
    environment = gym_wrapper.GymWrapper(inner)
    assert environment.environment is inner
    assert environment.get_info() is None
    play(environment, 1, action=5)
    assert environment.get_info() == {"steps": 1}
    assert environment.action_space is inner.action_space
    environment.seed(3)
    environment.reset()
    assert environment.seed_given == 3


def test_a_time_limit_of_gymnasium_is_a_truncation():
    environment = wrappers.GymWrapper(
        gymnasium.make("Pendulum-v1", max_episode_steps=2)
    )
    last = play(environment, 2, np.zeros(1, np.float32))[-1]
    assert (last.last(), last.discount) == (True, 1)


def test_single_precision_of_a_gymnasium_environment():
    environment = wrappers.SinglePrecisionWrapper(
        wrappers.GymWrapper(Ending(False, True))
    )
    timestep = play(environment, 1, action=np.int32(6))[-1]
    assert timestep.observation["position"].dtype == np.float32
    assert timestep.observation["choices"][1].dtype == np.int32
    assert environment.action_spec() == specs.BoundedArray((), np.int32, 5, 7)


def test_the_name_in_acmes_first_releases():
    assert wrappers.AtariGymWrapper is gym_wrapper.AtariGymWrapper
    assert gym_wrapper.AtariGymWrapper is gym_wrapper.GymAtariAdapter


def test_the_adapter_needs_a_game():
    with pytest.raises(ValueError, match=r"expected a game of ale-py; wrap other env"):
        wrappers.GymAtariAdapter(gymnasium.make("CartPole-v1"))


def test_the_environment_renders_as_it_was_made_to():
    class Shown(gymnasium.envs.classic_control.CartPoleEnv):
        def render(self):
            return f"shown as {self.render_mode}"

    environment = wrappers.GymWrapper(Shown(render_mode="human"))
    assert environment.render() == environment.render(mode="human") == "shown as human"
    with pytest.raises(ValueError, match="got mode 'rgb_array', expected the mode"):
        environment.render("rgb_array")
