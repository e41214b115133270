import copy
import pickle

import gymnasium
import numpy as np
import pytest
from absl.testing import absltest
from dm_env import specs, test_utils

from tests.acme.wrappers.scripted import Scripted, play, step_types
from tfrl.acme import wrappers
from tfrl.acme.wrappers import base
from tfrl.environments import DmEnvWrapper, utils

WRAPPERS = {
    "Nothing": wrappers.EnvironmentWrapper,
    "SinglePrecision": wrappers.SinglePrecisionWrapper,
    "FrameStacking": wrappers.FrameStackingWrapper,
    "ActionRepeat": lambda e: wrappers.ActionRepeatWrapper(e, 2),
    "NoopStarts": lambda e: wrappers.NoopStartsWrapper(e, noop_max=3, seed=1),
    "StepLimit": lambda e: wrappers.StepLimitWrapper(e, 3),
    "CanonicalSpec": wrappers.CanonicalSpecWrapper,
    "DelayedReward": lambda e: wrappers.DelayedRewardWrapper(e, 2),
    "ExpandScalar": wrappers.ExpandScalarObservationShapesWrapper,
    "ObservationActionReward": wrappers.ObservationActionRewardWrapper,
    "All": lambda e: wrappers.wrap_all(
        e,
        [
            wrappers.ObservationActionRewardWrapper,
            wrappers.ExpandScalarObservationShapesWrapper,
            wrappers.FrameStackingWrapper,
            wrappers.StepLimitWrapper,
            wrappers.SinglePrecisionWrapper,
        ],
    ),
}


def make_conformance_test(wrapper):
    class DmEnvsOwnSuiteTest(test_utils.EnvironmentTestMixin, absltest.TestCase):
        """dm_env's published conformance tests, over several short episodes."""

        def make_object_under_test(self):
            return wrapper(Scripted(rewards=[1.0, 2.0, 3.0, 4.0]))

    return DmEnvsOwnSuiteTest


# Pytest shows the classes' names as the tests' names.
globals().update(
    {f"{name}Test": make_conformance_test(make) for name, make in WRAPPERS.items()}
)


@pytest.mark.parametrize("name", WRAPPERS)
def test_wrapped_environments_work_in_tfrl(name):
    environment = WRAPPERS[name](Scripted(rewards=[1.0, 2.0, 3.0, 4.0]))
    utils.validate_py_environment(DmEnvWrapper(environment), episodes=2)


def test_attributes_of_the_whole_chain_are_found():
    inner = Scripted([1.0])
    outer = wrappers.FrameStackingWrapper(wrappers.StepLimitWrapper(inner))
    assert outer.num_resets == 0
    assert outer.environment.environment is inner
    with pytest.raises(AttributeError, match="num_rests"):
        _ = outer.num_rests
    outer.close()
    assert inner.closed


def test_wrappers_can_be_copied_and_pickled():
    outer = wrappers.StepLimitWrapper(Scripted([1.0, 2.0]), 1)
    for other in (copy.deepcopy(outer), pickle.loads(pickle.dumps(outer))):
        assert step_types(play(other, 2)) == "FLF"
        assert other.environment is not outer.environment


def test_wrap_all_applies_the_first_wrapper_first():
    environment = wrappers.wrap_all(
        Scripted([1.0]),
        [
            lambda e: wrappers.FrameStackingWrapper(e, num_frames=3),
            lambda e: wrappers.FrameStackingWrapper(e, num_frames=2),
        ],
    )
    assert environment.observation_spec().shape == (3, 2)
    inner = Scripted([1.0])
    assert wrappers.wrap_all(inner, []) is inner


def test_a_wrapper_written_as_in_acme_works():
    class Doubled(wrappers.EnvironmentWrapper):
        def step(self, action):
            timestep = self._environment.step(action)
            return timestep._replace(reward=2 * timestep.reward)

    assert [t.reward for t in play(Doubled(Scripted([1.0, 3.0])), 2)] == [None, 2, 6]


def test_other_environments_are_refused_with_the_remedy():
    with pytest.raises(TypeError, match=r"Gymnasium in tfrl\.acme\.wrappers\."):
        wrappers.StepLimitWrapper(gymnasium.make("CartPole-v1"))


def test_cast_follows_the_structure_of_the_specs():
    spec = {"a": [specs.Array((), np.float32)], "b": specs.DiscreteArray(3)}
    (a,), b = base.cast({"a": [1.5], "b": 2}, spec).values()
    assert (a, a.dtype, b, b.dtype) == (1.5, np.float32, 2, np.int32)
