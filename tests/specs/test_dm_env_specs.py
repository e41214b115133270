import collections

import dm_env
import gymnasium
import numpy as np
import pytest
from dm_env import specs as dm_specs

from tfrl import acme, environments, specs
from tfrl.acme import wrappers
from tfrl.environments import suite_gym, tf_py_environment
from tfrl.specs import EnvironmentSpec, make_environment_spec, tensor_spec
from tfrl.specs.array_spec import ArraySpec, BoundedArraySpec
from tfrl.specs.dm_env_specs import from_dm_env_spec, to_dm_env_spec


def test_arrays_keep_shape_dtype_and_name():
    spec = from_dm_env_spec(dm_specs.Array((2,), np.float64, "velocity"))
    assert type(spec) is ArraySpec
    assert spec == ArraySpec((2,), np.float64)
    assert spec.name == "velocity"


def test_bounds_are_kept_and_made_finite():
    spec = from_dm_env_spec(
        dm_specs.BoundedArray((2,), np.float32, [-1, -np.inf], np.inf)
    )
    assert spec == BoundedArraySpec((2,), np.float32, [-1, -np.inf], np.inf)
    assert np.all(np.isfinite(spec.minimum))


def test_discrete_arrays_count_from_zero():
    spec = from_dm_env_spec(dm_specs.DiscreteArray(5))
    assert spec == BoundedArraySpec((), np.int32, 0, 4)


def test_nests_are_converted_and_our_specs_stay():
    ours = ArraySpec((), np.int32)
    spec = from_dm_env_spec({"a": [dm_specs.Array((), np.int32)], "b": ours})
    assert spec == {"a": [ours], "b": ours}
    assert spec["b"] is ours


def test_strings_become_objects():
    spec = from_dm_env_spec(dm_specs.StringArray((), name="text"))
    assert spec == ArraySpec((), object)


def test_bounded_zero_based_integers_become_discrete_arrays():
    spec = to_dm_env_spec(BoundedArraySpec((), np.int64, 0, 4, "action"))
    assert spec == dm_specs.DiscreteArray(5, np.int64, "action")


@pytest.mark.parametrize(
    "spec",
    [
        BoundedArraySpec((), np.int32, 1, 4, "a"),
        BoundedArraySpec((2,), np.int32, 0, 4, "a"),
        BoundedArraySpec((), np.uint8, name="a"),
        BoundedArraySpec((), np.float32, 0, 1, "a"),
    ],
)
def test_other_bounded_specs_become_bounded_arrays(spec):
    converted = to_dm_env_spec(spec)
    assert type(converted) is dm_specs.BoundedArray
    np.testing.assert_array_equal(converted.minimum, spec.minimum)
    np.testing.assert_array_equal(converted.maximum, spec.maximum)


@pytest.mark.parametrize(
    "spec",
    [
        ArraySpec((2, 3), np.uint8, "pixels"),
        BoundedArraySpec((), np.int32, 0, 3, "action"),
        BoundedArraySpec((2,), np.float64, [-1, 0], 1, "position"),
    ],
)
def test_round_trip(spec):
    back = from_dm_env_spec(to_dm_env_spec([spec]))[0]
    assert type(back) is type(spec)
    assert back == spec
    assert back.name == spec.name


def test_other_things_are_named():
    with pytest.raises(ValueError, match="spec: got 3 of type int in the nest"):
        from_dm_env_spec({"a": 3})
    with pytest.raises(ValueError, match=r"spec: got Array\(.*expected ArraySpecs"):
        to_dm_env_spec([dm_specs.Array((), np.int32)])


def test_dm_envs_classes_are_here_too():
    assert specs.Array is dm_specs.Array
    assert specs.BoundedArray is dm_specs.BoundedArray
    assert specs.DiscreteArray is dm_specs.DiscreteArray


def test_specs_of_dm_env_and_of_tensors_are_converted_to_each_other():
    ours = {
        "action": specs.DiscreteArray(3, np.int64, "action"),
        "position": specs.BoundedArray((2,), np.float32, [-1, -2], 1.0, "position"),
        "speed": specs.Array((2,), np.float32, "speed"),
    }
    tensors = tensor_spec.from_spec(ours)
    assert tensors["action"] == specs.BoundedTensorSpec(
        (), "int64", 0, 2, name="action"
    )
    assert tensors["position"].minimum.tolist() == [-1, -2]
    assert tensors["speed"] == specs.TensorSpec((2,), "float32", "speed")
    assert to_dm_env_spec(tensor_spec.to_array_spec(tensors)) == ours


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
