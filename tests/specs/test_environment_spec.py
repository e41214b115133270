import collections

import dm_env
import gymnasium
import numpy as np
import pytest

from tfrl import acme, environments
from tfrl.acme import wrappers
from tfrl.environments import suite_gym, tf_py_environment
from tfrl.specs import EnvironmentSpec, make_environment_spec, tensor_spec


class DmEnvironment(dm_env.Environment):
    def reset(self):
        return dm_env.restart(np.zeros(2))

    def step(self, action):
        return dm_env.termination(1.0, np.zeros(2))

    def observation_spec(self):
        return {"position": dm_env.specs.Array((2,), np.float64)}

    def action_spec(self):
        return dm_env.specs.DiscreteArray(3)


TimeStep = collections.namedtuple("TimeStep", "step_type reward discount observation")


class OurEnvironment:
    def time_step_spec(self):
        return TimeStep("step_type", "reward", "discount", "observation")

    def action_spec(self):
        return "action"


class DuckEnvironment:
    """Has dm_env's methods, and not its base class."""

    observation_spec = action_spec = reward_spec = discount_spec = lambda self: "spec"


def test_dm_env_environment_has_its_own_specs():
    spec = make_environment_spec(DmEnvironment())
    assert spec == EnvironmentSpec(
        observations={"position": dm_env.specs.Array((2,), np.float64)},
        actions=dm_env.specs.DiscreteArray(3),
        rewards=dm_env.specs.Array((), np.float64),
        discounts=dm_env.specs.BoundedArray((), np.float64, 0, 1),
    )
    spec.observations["position"].validate(np.zeros(2))
    assert spec.actions.generate_value() == 0
    assert make_environment_spec(DuckEnvironment()) == EnvironmentSpec(*["spec"] * 4)


@pytest.mark.parametrize(
    "make",
    [
        lambda: wrappers.GymWrapper(gymnasium.make("CartPole-v1")),
        lambda: environments.PyToDMWrapper(suite_gym.load("CartPole-v1")),
        lambda: wrappers.StepLimitWrapper(
            wrappers.GymWrapper(gymnasium.make("CartPole-v1")), 3
        ),
    ],
)
def test_environments_made_dm_envs_have_specs_of_dm_env(make):
    environment = make()
    spec = make_environment_spec(environment)
    assert {type(leaf).__module__ for leaf in spec} == {"dm_env.specs"}
    assert spec.actions == environment.action_spec()
    assert spec.rewards == environment.reward_spec()


def test_our_environments_give_their_time_step_spec():
    assert make_environment_spec(OurEnvironment()) == EnvironmentSpec(
        observations="observation",
        actions="action",
        rewards="reward",
        discounts="discount",
    )


def test_other_objects_are_named_with_what_they_lack():
    with pytest.raises(TypeError, match=r"of type int without observation_spec, act"):
        make_environment_spec(3)


@pytest.mark.parametrize("name", ["CartPole-v1", "Pendulum-v1", "Blackjack-v1"])
def test_gymnasiums_environments_have_the_specs_that_suite_gym_gives_them(name):
    spec = make_environment_spec(gymnasium.make(name))
    environment = suite_gym.load(name)
    assert spec == make_environment_spec(environment)
    assert spec.observations == environment.observation_spec()


def test_environments_of_tensors_have_tensor_specs_without_the_batch():
    environment = suite_gym.load("CartPole-v1")
    tensors = make_environment_spec(tf_py_environment.TFPyEnvironment(environment))
    arrays = make_environment_spec(environment)
    assert tensors == EnvironmentSpec(*map(tensor_spec.from_spec, arrays))


def test_the_function_is_also_at_the_top():
    assert acme.make_environment_spec is make_environment_spec
