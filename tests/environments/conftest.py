"""Fixtures for the tests of environments."""

import numpy as np
import pytest
import tree

from tfrl.environments import py_environment
from tfrl.savers import serialization
from tfrl.specs import array_spec


@pytest.fixture
def check_resuming():
    """Returns a function that checks that a saved state continues bit for bit."""
    return _check_resuming


def _check_resuming(make, *steps, more=60):
    """Plays on from states that went through bytes, in another object.

    The environment whose states were saved, and another whose state nobody has read,
    must have the same observations, rewards and step types.

    Args:
      make: Makes the environment.
      *steps: The numbers of steps before a state is saved, in order; 30 by default.
      more: The number of steps after it.

    Returns:
      The time steps after the last state.
    """
    steps = steps or (30,)
    environment, other, control = make(), make(), make()
    environment.seed(3), control.seed(3)
    spec, size = environment.action_spec(), environment.batch_size
    rng = np.random.default_rng(0)
    actions = [
        array_spec.sample_spec_nest(spec, rng, () if size is None else (size,))
        for _ in range(steps[-1] + more)
    ]
    expected, states = [], {}
    for i, action in enumerate(actions):
        if i in steps:
            state = py_environment.capture_state(environment)
            states[i] = serialization.to_bytes(state)
        expected.append(environment.step(action))
        assert_same(control.step(action), expected[-1])
    assert tuple(states) == steps
    # The states are copies: they have not changed with the environment.
    for i, data in states.items():
        py_environment.restore_state(other, serialization.from_bytes(data))
        for action, time_step in zip(actions[i:][:more], expected[i:], strict=False):
            assert_same(other.step(action), time_step)
    for one in (environment, other, control):
        one.close()
    return expected[steps[-1] :]


def assert_same(time_step, expected):
    tree.map_structure(np.testing.assert_array_equal, time_step, expected)
