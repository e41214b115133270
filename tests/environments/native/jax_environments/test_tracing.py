import collections
import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest
import tensorflow as tf

from tfrl.compilation import stablehlo
from tfrl.environments.native.jax_environments import forms, tracing

jax = pytest.importorskip("jax")
jnp = jax.numpy
from tests.environments.native.jax_environments import counters  # noqa: E402

PROJECT = pathlib.Path(__file__).parents[4] / "pyproject.toml"


def rules():
    return forms.dm_env(counters.DmEnv())


def run(code, **environment):
    """Runs a program in a process without JAX; returns the words that it printed."""
    ended = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **environment},
    )
    assert ended.returncode == 0, ended.stderr
    return ended.stdout.split()


def test_jax_gets_the_cpu_alone_and_the_variable_stays():
    code = """
import os
from tfrl.environments.native.jax_environments import tracing
with tracing.session() as jax:
    print(jax.config.jax_platforms, os.environ["JAX_PLATFORMS"])
    print(jax.config.jax_default_device.platform)
"""
    assert run(code, JAX_PLATFORMS="cuda,cpu") == ["cpu", "cuda,cpu", "cpu"]


def test_settings_of_a_process_that_has_imported_jax_stay():
    before = dict(jax.config.values)
    tracing.Traced(rules(), counters.ACTION)
    assert jax.config.values == before


def test_other_settings_than_the_defaults_are_seen():
    assert tracing.has_usual_settings()
    with jax.enable_x64(True):
        assert not tracing.has_usual_settings()


def test_without_jax_the_environments_variables_tell_its_settings():
    code = """
import sys
from tfrl.environments.native.jax_environments import tracing
print(tracing.has_usual_settings(), "jax" in sys.modules)
"""
    assert run(code, JAX_ENABLE_X64="1") == ["False", "False"]
    assert run(code) == ["True", "False"]


def test_states_of_float64_keep_their_dtype_and_rewards_are_float32():
    with jax.enable_x64(True):
        traced = tracing.Traced(
            forms.Rules(
                lambda key: (jnp.zeros((), jnp.float64), jnp.zeros(2)),
                lambda key, state, action: forms.Step(
                    state + 1, jnp.ones(2), state, state > 3
                ),
            ),
            counters.ACTION,
        )
        program = traced.lower("step", 3, "cpu")
    assert traced.state == [("float64", []), ("float64", [2])]
    assert [x.dtype.name for x in program.outputs] == [
        "float64",
        "float64",
        "float32",
        "bool",
        "bool",
    ]


@pytest.mark.parametrize("platform", ["cpu", "cuda"])
@pytest.mark.parametrize("name", ["step", "restart"])
def test_a_program_has_no_call_that_tensorflow_lacks(name, platform):
    program = tracing.Traced(rules(), counters.ACTION).lower(name, 3, platform)
    assert stablehlo.unknown_calls(program.text) == []
    assert all(x.shape[0] == 3 for x in program.outputs)


def test_linear_algebra_of_jaxs_libraries_is_replaced():
    def step(key, state, action):
        square = jnp.eye(3) * 4 + state
        root = jnp.linalg.cholesky(square)
        return forms.Step(state, root, 0.0, False)

    linear = forms.Rules(lambda key: (jnp.zeros((3, 3)), jnp.zeros((3, 3))), step)
    traced = tracing.Traced(linear, counters.ACTION)
    program = traced.lower("step", 2, "cpu")
    function = stablehlo.Function(lambda *_: program)
    state = [tf.zeros([2, *shape], dtype) for dtype, shape in traced.state]
    results = tf.function(function, jit_compile=True, autograph=False)(
        tf.zeros([2, tracing.KEY_SIZE]), *state, tf.zeros([2], tf.int32)
    )
    np.testing.assert_allclose(results[traced.observed[0]][1], 2 * np.eye(3))


def test_a_long_constant_of_bools_keeps_its_values():
    walls = np.random.default_rng(0).random([13, 13]) < 0.5
    constant = forms.Rules(
        lambda key: (jnp.zeros(()), jnp.asarray(walls)),
        lambda key, state, action: forms.Step(state, jnp.asarray(walls), 0.0, False),
        draws=False,
    )
    traced = tracing.Traced(constant, counters.ACTION)
    program = traced.lower("step", 2, "cpu")
    state = [tf.zeros([2, *shape], dtype) for dtype, shape in traced.state]
    results = stablehlo.Function(lambda *_: program)(*state, tf.zeros([2], tf.int32))
    np.testing.assert_array_equal(results[traced.observed[0]][1], walls)


@pytest.mark.parametrize("members", [1, 2, 7])
def test_a_restart_resets_those_that_need_it_and_no_other(members):
    traced = tracing.Traced(rules(), counters.ACTION)
    program = traced.lower("restart", members, "cpu")
    function = stablehlo.Function(lambda *_: program)
    random = np.random.default_rng(0).random([members, tracing.KEY_SIZE], np.float32)
    old = [
        tf.cast(tf.fill([members, *shape], 7), dtype) for dtype, shape in traced.state
    ]
    needed = np.arange(members) % 3 != 1
    results = function(tf.constant(needed), tf.constant(random), *old)
    halves = (random * 2**16).astype(np.uint32)
    for member in range(members):
        words = halves[member, ::2] << 16 | halves[member, 1::2]
        state, _ = rules().reset(jax.random.wrap_key_data(words))
        expected = [state.count, state.time, jax.random.key_data(state.key)]
        for result, new, before in zip(results, expected, old, strict=False):
            value = new if needed[member] else before[member]
            np.testing.assert_array_equal(result[member], value)


def test_a_graph_is_no_observation():
    graph = collections.namedtuple("GraphsTuple", ["nodes", "edges"])
    made = graph(jnp.zeros(3), jnp.zeros(2))
    graphs = forms.Rules(
        lambda key: (jnp.zeros(()), made),
        lambda key, state, action: forms.Step(state, made, 0.0, False),
    )
    with pytest.raises(ValueError, match="observation: got a graph, expected arrays"):
        tracing.Traced(graphs, counters.ACTION)


def test_parts_of_an_observation_keep_their_names_and_places():
    seen = {"b": jnp.zeros(2), "a": (jnp.ones(3, jnp.int32), jnp.zeros((), bool))}
    nested = forms.Rules(
        lambda key: (jnp.zeros(()), seen),
        lambda key, state, action: forms.Step(state, seen, 0.0, False),
    )
    traced = tracing.Traced(nested, counters.ACTION)
    shapes = tf.nest.map_structure(
        lambda x: (x.dtype.name, x.shape), traced.observation_spec
    )
    assert shapes["b"] == ("float32", (2,))
    assert shapes["a"] == (("int32", (3,)), ("bool", ()))
    flat = [traced.state[i] for i in traced.observed]
    assert flat == [("int32", [3]), ("bool", []), ("float32", [2])]


def test_an_older_release_than_the_extras_is_refused(monkeypatch):
    oldest = ".".join(map(str, tracing._OLDEST))
    assert f'jax = ["jax>={oldest}"]' in PROJECT.read_text()
    monkeypatch.setattr(jax, "__version__", "0.9.2")
    monkeypatch.setattr(jax, "__version_info__", (0, 9, 2))
    with pytest.raises(
        ImportError,
        match=rf"jax: got release 0.9.2, .* TensorFlow {tf.__version__} .*, expected "
        rf"{oldest} or later; install it with: pip install 'tfrl\[jax\]'",
    ):
        tracing.Traced(rules(), counters.ACTION)


def test_releases_that_do_not_fit_are_named(monkeypatch):
    monkeypatch.setattr(stablehlo, "obstacle", lambda *_: "unknown attribute\nmore")
    traced = tracing.Traced(rules(), counters.ACTION)
    with pytest.raises(
        ValueError,
        match=rf"jax: got release {jax.__version__}, whose programs TensorFlow "
        rf"{tf.__version__} cannot read \(unknown attribute\), expected one of about",
    ):
        traced.lower("step", 2, "cpu")
