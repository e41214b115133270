import collections

import dm_env
import numpy as np
import pytest

from tfrl.specs import EnvironmentSpec, make_environment_spec
from tfrl.specs.array_spec import ArraySpec, BoundedArraySpec


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


def test_dm_env_environment_has_its_specs_converted():
    spec = make_environment_spec(DmEnvironment())
    assert spec == EnvironmentSpec(
        observations={"position": ArraySpec((2,), np.float64)},
        actions=BoundedArraySpec((), np.int32, 0, 2),
        rewards=ArraySpec((), np.float64),
        discounts=BoundedArraySpec((), np.float64, 0, 1),
    )


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
