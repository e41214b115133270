"""Environments whose every step is known, for tests of wrappers."""

import numpy as np
import pytest

from tfrl import testing
from tfrl.environments import batched_py_environment
from tfrl.specs import array_spec


@pytest.fixture
def scripted():
    """Makes `CountingEnvironment`s that observe float32 and discount by 0.5."""

    def make(action_spec=None, length=3, **kwargs):
        kwargs.setdefault("observation_spec", array_spec.ArraySpec((), np.float32))
        return testing.CountingEnvironment(
            length, action_spec=action_spec, discount=0.5, **kwargs
        )

    return make


@pytest.fixture
def batch_of():
    """Makes one batched environment of its members."""

    def batch(*members):
        return batched_py_environment.BatchedPyEnvironment(
            members, multithreading=False
        )

    return batch
