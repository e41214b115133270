import dm_env
import numpy as np
import pytest
from absl.testing import absltest
from dm_env import specs as dm_specs
from dm_env import test_utils

from tfrl.environments import (
    batched_py_environment,
    py_to_dm_wrapper,
    random_py_environment,
    test_envs,
    wrappers,
)
from tfrl.specs import array_spec


class DmEnvsOwnSuiteTest(test_utils.EnvironmentTestMixin, absltest.TestCase):
    """dm_env's published conformance tests, over several short episodes."""

    def make_object_under_test(self):
        return py_to_dm_wrapper.PyToDMWrapper(test_envs.NestedCountingEnv(3, True))


class DmEnvsOwnSuiteOnRandomObservationsTest(
    test_utils.EnvironmentTestMixin, absltest.TestCase
):
    def make_object_under_test(self):
        spec = array_spec.BoundedArraySpec((2, 3), np.uint8, 0, 9)
        action = array_spec.BoundedArraySpec((2,), np.float32, -1, 1)
        return py_to_dm_wrapper.PyToDMWrapper(
            random_py_environment.RandomPyEnvironment((spec, spec), action, 0.3)
        )


def test_specs_are_those_of_dm_env():
    environment = py_to_dm_wrapper.PyToDMWrapper(test_envs.CountingEnv(3))
    assert environment.action_spec() == dm_specs.DiscreteArray(2, np.int32, "action")
    assert environment.observation_spec().dtype == np.int32
    assert environment.reward_spec() == dm_specs.Array((), np.float32, "reward")
    assert environment.discount_spec() == dm_specs.BoundedArray(
        (), np.float32, 0.0, 1.0, "discount"
    )


@pytest.mark.parametrize("handle_auto_reset", [True, False])
def test_an_episode_and_the_reset_after_it(handle_auto_reset):
    inner = test_envs.CountingEnv(2)
    inner._handle_auto_reset = handle_auto_reset
    environment = py_to_dm_wrapper.PyToDMWrapper(inner)
    steps = [environment.step(0) for _ in range(4)]
    assert [step.step_type for step in steps] == [
        dm_env.StepType.FIRST,
        dm_env.StepType.MID,
        dm_env.StepType.LAST,
        dm_env.StepType.FIRST,
    ]
    assert [step.reward for step in steps] == [None, 0, 1, None]
    assert [step.discount for step in steps] == [None, 1, 0, None]
    assert [int(step.observation) for step in steps] == [0, 1, 2, 10]


def test_rewards_and_discounts_are_scalars_of_their_specs():
    environment = py_to_dm_wrapper.PyToDMWrapper(test_envs.CountingEnv(3))
    environment.reset()
    step = environment.step(0)
    assert (type(step.reward), type(step.discount)) == (np.float32, np.float32)


def test_a_truncation_keeps_its_discount():
    environment = py_to_dm_wrapper.PyToDMWrapper(
        wrappers.TimeLimit(test_envs.CountingEnv(9), 1)
    )
    environment.reset()
    step = environment.step(0)
    assert (step.last(), step.discount) == (True, 1)


def test_the_rest_is_the_environments_own():
    inner = test_envs.CountingEnv(3)
    environment = py_to_dm_wrapper.PyToDMWrapper(inner)
    assert environment.environment is inner
    assert environment.get_info() == {}
    with pytest.raises(AttributeError, match="nothing"):
        environment.nothing  # noqa: B018


def test_other_environments_are_errors():
    batch = batched_py_environment.BatchedPyEnvironment(
        [test_envs.CountingEnv()], False
    )
    with pytest.raises(
        NotImplementedError, match=r"env: got a batched environment \(batch_size 1\)"
    ):
        py_to_dm_wrapper.PyToDMWrapper(batch)
    with pytest.raises(TypeError, match="env: got 3 of type int, expected a PyEnv"):
        py_to_dm_wrapper.PyToDMWrapper(3)


def test_a_restored_state_goes_on_in_the_middle_of_its_episode():
    inner = wrappers.PyEnvironmentBaseWrapper(test_envs.CountingEnv(3))
    environment = py_to_dm_wrapper.PyToDMWrapper(inner)
    environment.reset()
    environment.step(0)
    state = inner.get_state()
    while not environment.step(0).last():
        pass
    inner.set_state(state)
    assert environment.step(0).mid()
