"""Fixtures for the tests of environments."""

import numpy as np
import pytest
import tree

from tfrl.environments import py_environment
from tfrl.specs import array_spec
from tfrl.utils.nests import serialization


@pytest.fixture
def check_resuming():
    """Returns a function that checks that a saved state continues bit for bit."""
    return _check_resuming


def _check_resuming(make, steps=30, more=60):
    """Plays on from a state that went through bytes, in another object.

    The observations, rewards and step types must be those of the environment whose
    state was saved, and those of one whose state nobody has read.

    Args:
      make: Makes the environment.
      steps: The number of steps before the state is saved.
      more: The number of steps after it.
    """
    environment, other, control = make(), make(), make()
    environment.seed(3), control.seed(3)
    spec, size = environment.action_spec(), environment.batch_size
    rng = np.random.default_rng(0)
    actions = [
        array_spec.sample_spec_nest(spec, rng, () if size is None else (size,))
        for _ in range(steps + more)
    ]
    for action in actions[:steps]:
        environment.step(action)
        control.step(action)
    data = serialization.to_bytes(py_environment.capture_state(environment))
    expected = [environment.step(action) for action in actions[steps:]]
    # The state is a copy: it has not changed with the environment.
    py_environment.restore_state(other, serialization.from_bytes(data))
    for action, time_step in zip(actions[steps:], expected, strict=True):
        for again in (other.step(action), control.step(action)):
            tree.map_structure(np.testing.assert_array_equal, again, time_step)
    for one in (environment, other, control):
        one.close()
    return expected
