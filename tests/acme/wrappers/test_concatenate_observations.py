import numpy as np
import pytest
from dm_env import specs

from tests.acme.wrappers.scripted import Scripted
from tfrl.acme import wrappers

SPEC = {
    "velocity": specs.Array((2,), np.float64),
    "angle": specs.Array((), np.float32),
    "nested": {"contact": specs.Array((1,), np.float32)},
}
OBSERVATION = {
    "velocity": np.array([1.0, 2.0]),
    "angle": np.float32(3),
    "nested": {"contact": np.array([4], np.float32)},
}


def make(name_filter=None):
    inner = Scripted([0.0], observations=[OBSERVATION] * 2, observation_spec=SPEC)
    return wrappers.ConcatObservationWrapper(inner, name_filter)


@pytest.mark.parametrize(
    ("names", "vector"),
    [
        (None, [3, 4, 1, 2]),
        (["velocity", "angle"], [3, 1, 2]),
        (["velocity"], [1, 2]),
    ],
)
def test_entries_are_concatenated_in_the_order_of_their_names(names, vector):
    environment = make(names)
    for timestep in (environment.reset(), environment.step(0)):
        assert timestep.observation.tolist() == vector
        environment.observation_spec().validate(timestep.observation)
    assert environment.observation_spec().name == "state"


def test_missing_names_and_other_observations_are_refused():
    with pytest.raises(ValueError, match=r"without \['speed'\]"):
        make(["speed", "angle"])
    with pytest.raises(ValueError, match="expected a dict with these names"):
        wrappers.ConcatObservationWrapper(Scripted([0.0]))
