"""One environment of each library in what all environments go through."""

import functools

import numpy as np
import pytest
import tensorflow as tf

from tests.environments.native.jax_environments.test_equality import NAMES, SLOW
from tfrl import testing
from tfrl.compilation import stablehlo
from tfrl.environments import native, suites
from tfrl.environments.native.jax_environments import libraries, tracing

pytest.importorskip("jax")
EVERY = [pytest.param(x, marks=[pytest.mark.slow] * (x in SLOW)) for x in NAMES]


def find(library):
    """The row of a library that is installed."""
    row, _ = libraries.find(f"{library}/")
    pytest.importorskip(row.module)
    return row


@functools.cache
def environment(library):
    """Two members; what `seed` turns into a new environment."""
    dynamics = suites.find_dynamics(f"{library}/{NAMES[library][0]}")
    return native.NativeEnvironment(dynamics, 2, seed=0)


def actions(library, number):
    spec = environment(library).action_spec()
    rng = np.random.default_rng(0)
    low, high = spec.minimum, spec.maximum
    shape = number, 2, *spec.shape
    draws = rng.integers(low, high + 1, shape)
    if spec.dtype.is_floating:
        draws = rng.uniform(low, high, shape)
    return draws.astype(spec.dtype.as_numpy_dtype)


def arrays(time_step):
    return [x.numpy() for x in tf.nest.flatten(time_step)]


@pytest.mark.parametrize("library", EVERY)
def test_it_passes_the_suite_for_environments(library):
    find(library)

    class Suite(testing.TFEnvironmentConformance):
        num_steps = 10

        def make_environment(self):
            environment(library).seed(0)
            return environment(library)

    Suite().run_all()


@pytest.mark.parametrize("library", EVERY)
def test_a_saved_state_continues_exactly(library):
    find(library)
    made = environment(library)
    made.seed(1)
    before, after = np.split(actions(library, 8), 2)
    for action in before:
        made.step(action)
    state = made.get_state()
    first = [arrays(made.step(action)) for action in after]
    made.set_state(state)
    second = [arrays(made.step(action)) for action in after]
    for one, two in zip(first, second, strict=True):
        for x, y in zip(one, two, strict=True):
            np.testing.assert_array_equal(x, y)


@pytest.mark.parametrize("library", EVERY)
def test_the_programs_for_a_gpu_call_nothing_that_only_jax_has(library):
    row = find(library)
    with tracing.session():
        made = row.make(NAMES[library][0])
        traced = tracing.Traced(made.rules, made.action_spec)
        for name in ("initial", "step", "restart"):
            program = traced.lower(name, 2, "cuda")
            assert stablehlo.unknown_calls(program.text) == []
