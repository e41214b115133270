"""One environment of each library in what all environments go through."""

import functools

import numpy as np
import pytest
import tensorflow as tf

from tests.environments.native.jax_environments.test_equality import NAMES
from tests.pairs import some_slow
from tfrl import testing
from tfrl.compilation import stablehlo
from tfrl.environments import extras, native, suites
from tfrl.environments.native.jax_environments import libraries, tracing

pytest.importorskip("jax")
pytestmark = pytest.mark.timeout(1800)  # XLA compiles some for minutes.
EVERY = some_slow(NAMES, fast=("gymnax", "pgx"))


def find(library):
    """The row of a library that is installed."""
    row, _ = libraries.find(f"{library}/")
    # An import here would choose what MuJoCo draws with.
    if not extras.is_installed(row.module):
        pytest.skip(f"{row.module} is not installed")
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
    if spec.dtype.is_floating:
        draws = rng.uniform(low, high, shape)
    else:
        draws = rng.integers(low, high + 1, shape)
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
def test_it_is_drawn_where_the_library_draws(library):
    row = find(library)
    made = environment(library)
    made.reset()
    if not row.films:
        assert made.dynamics.render is None
        return
    pictures = made.render()
    assert (len(pictures), pictures.shape[-1], pictures.dtype) == (2, 3, np.uint8)
    for picture in pictures:
        assert len(np.unique(picture.reshape(-1, 3), axis=0)) > 1


@pytest.mark.parametrize("library", EVERY)
def test_the_programs_for_a_gpu_call_nothing_that_only_jax_has(library):
    row = find(library)
    with tracing.session():
        made = row.make(NAMES[library][0])
        traced = tracing.Traced(made.rules, made.action_spec)
        for name in ("step", "restart"):
            program = traced.lower(name, 2, "cuda")
            assert stablehlo.unknown_calls(program.text) == []


def dynamics_of(name):
    library, _ = libraries.find(name)
    pytest.importorskip(library.module)
    return suites.find_dynamics(name)


def test_gymnaxs_spaces_are_specs():
    dynamics = dynamics_of("gymnax/Breakout-MinAtar")
    spec, action = dynamics.observation_spec, dynamics.action_spec
    assert (spec.shape, spec.dtype) == ([10, 10, 4], tf.float32)
    assert (spec.minimum.min(), spec.maximum.max()) == (0, 1)
    assert (action.shape, action.minimum, action.maximum) == ([], 0, 2)
    assert dynamics.max_episode_steps == 1000


def test_an_action_of_gymnax_has_the_bounds_of_its_box():
    action = dynamics_of("gymnax/Pendulum-v1").action_spec
    assert (action.shape, action.minimum, action.maximum) == ([1], -2, 2)


def test_jumanjis_specs_have_masks_and_parts():
    spec = dynamics_of("jumanji/Snake-v1").observation_spec
    assert set(spec) == {"grid", "step_count", "action_mask"}
    assert (spec["action_mask"].shape, spec["action_mask"].dtype) == ([4], tf.bool)
    assert spec["grid"].maximum.max() == 1


def test_gymnaxs_cart_pole_is_truncated_at_its_limit():
    """The pole stays up for 500 steps if the cart follows it."""
    environment = native.NativeEnvironment(dynamics_of("gymnax/CartPole-v1"), 4)
    step = tf.function(environment.step, jit_compile=True, autograph=False)
    seen = environment.reset()
    kinds, discounts = [], []
    for _ in range(500):
        x, speed, angle, turn = tf.unstack(seen.observation, axis=1)
        right = 10 * angle + 2 * turn + 0.1 * x + 0.3 * speed > 0
        seen = step(tf.cast(right, tf.int32))
        kinds.append(seen.step_type.numpy())
        discounts.append(seen.discount.numpy())
    assert np.all(np.asarray(kinds)[:-1] == 1)
    assert np.all(kinds[-1] == 2)
    assert np.all(np.asarray(discounts) == 1)


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("gymnax/Breakout", "gymnax/Breakout-MinAtar"),
        ("brax/aunt", "brax/ant"),
        ("jumanji/Snake-v9", "jumanji/Snake-v1"),
    ],
)
def test_an_unknown_name_has_near_ones(name, near):
    library, _ = libraries.find(name)
    pytest.importorskip(library.module)
    with pytest.raises(ValueError, match=f"got '{name}', expected one of .*{near}"):
        suites.find_action_space(name)


def test_each_library_lists_names_that_it_has():
    for library in libraries.LIBRARIES:
        pytest.importorskip(library.module)
        suite, _ = suites.find(library.prefix + "x")
        names = list(suite.names())
        assert len(names) > 3
        assert all(name.startswith(library.prefix) for name in names)
