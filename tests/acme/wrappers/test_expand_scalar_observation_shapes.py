import numpy as np
from dm_env import specs

from tests.acme.wrappers.scripted import Scripted, play
from tfrl.acme import wrappers


def test_scalars_become_vectors_of_one():
    inner = Scripted(
        [0.0],
        observations=[(np.int32(2), np.ones((2, 3)))] * 2,
        observation_spec=(
            specs.DiscreteArray(5, name="action"),
            specs.Array((2, 3), np.float64),
        ),
    )
    environment = wrappers.ExpandScalarObservationShapesWrapper(inner)
    scalar, matrix = environment.observation_spec()
    assert scalar == specs.Array((1,), np.int32)
    assert scalar.name == "action"
    assert matrix.shape == (2, 3)
    for timestep in play(environment, 1):
        assert timestep.observation[0].tolist() == [2]
        assert timestep.observation[0].dtype == np.int32
        assert timestep.observation[1].shape == (2, 3)
