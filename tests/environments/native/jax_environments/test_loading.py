import importlib.metadata
import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest
import tensorflow as tf

from tfrl.environments import native, suites
from tfrl.environments.native.jax_environments import loading, tracing

jax = pytest.importorskip("jax")
jnp = jax.numpy
from tests.environments.native.jax_environments import counters  # noqa: E402

ROOT = pathlib.Path(__file__).parents[4]
FORMS = sorted(counters.MADE)


def made(form, **changes):
    environment, arguments = counters.MADE[form]
    arguments = {"action_spec": counters.ACTION, **arguments, **changes}
    return native.from_jax(environment, form, **arguments)


def walk(environment, actions):
    """Steps an environment; returns the fields of its time steps as arrays."""
    steps = [environment.reset(), *map(environment.step, actions)]
    return [tf.nest.map_structure(lambda x: x.numpy(), step) for step in steps]


def expected(first, actions):
    """The time steps of a member, in plain Python, from its first counts."""
    starts, steps = iter(first), []
    count, time = next(starts), 0
    steps.append((0, 0.0, 1.0, count, time))
    for action in actions:
        if steps[-1][0] == 2:
            count, time = next(starts), 0
            steps.append((0, 0.0, 1.0, count, time))
            continue
        count, time = count + action, time + 1
        is_goal = count >= counters.GOAL
        kind = 2 if is_goal or time >= counters.LIMIT else 1
        steps.append((kind, float(action), 0.0 if is_goal else 1.0, count, time))
    return steps


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("jit_compile", [False, True])
def test_each_form_has_the_ends_of_plain_python(form, jit_compile):
    environment = native.NativeEnvironment(made(form), 3, seed=4)
    step = tf.function(environment.step, autograph=False, jit_compile=jit_compile)
    actions = np.random.default_rng(0).integers(0, 2, [20, 3]).astype(np.int32)
    seen = [environment.reset(), *(step(tf.constant(x)) for x in actions)]
    kinds = set()
    for member in range(3):
        found = [
            tuple(
                float(x[member] if x.shape.rank == 1 else x[member, 0])
                for x in (
                    step.step_type,
                    step.reward,
                    step.discount,
                    step.observation["count"],
                    step.observation["time"],
                )
            )
            for step in seen
        ]
        starts = [x[3] for x in found if x[0] == 0]
        assert found == expected(starts, actions[:, member])
        kinds |= {(x[0], x[2]) for x in found}
    assert {(2, 0.0), (2, 1.0)} <= kinds  # Both ends have been seen.


@pytest.mark.parametrize("form", FORMS)
def test_specs_are_those_of_the_observations(form):
    dynamics = made(form, observation_bounds={"count": (0, 4)})
    spec = dynamics.observation_spec
    assert spec["count"].maximum == 4
    assert spec["time"] == tf.TensorSpec([2], tf.float32)
    assert native.NativeEnvironment(dynamics, 2).action_spec().dtype == tf.int32


@pytest.mark.parametrize("form", FORMS)
def test_a_seed_determines_a_run_which_resumes_exactly(form):
    actions = tf.constant(np.random.default_rng(1).integers(0, 2, [12, 4]), tf.int32)
    environment = native.NativeEnvironment(made(form), 4, seed=7)
    first = walk(environment, actions)
    environment.seed(7)
    environment.reset()
    for action in actions[:6]:
        environment.step(action)
    other = native.NativeEnvironment(made(form), 4, seed=8)
    other.set_state(environment.get_state())
    rest = [
        tf.nest.map_structure(lambda x: x.numpy(), other.step(x)) for x in actions[6:]
    ]
    tf.nest.map_structure(np.testing.assert_array_equal, first[7:], rest)


def test_an_episode_alone_is_that_in_a_batch():
    actions = np.random.default_rng(2).integers(0, 2, [12, 5]).astype(np.int32)
    batch = native.NativeEnvironment(made("dm_env"), 5, seed=3)
    batch.reset()
    start = batch.physical_state()
    alone = native.NativeEnvironment(made("dm_env"), 1, seed=9)
    alone.reset_to(tf.nest.map_structure(lambda x: x[2:3], start))
    for action in actions[:3]:
        many, one = batch.step(action), alone.step(action[2:3])
        for x, y in zip(tf.nest.flatten(many), tf.nest.flatten(one), strict=True):
            np.testing.assert_array_equal(x[2:3], y)


def test_a_state_that_holds_its_observation_has_it_once():
    held = native.NativeEnvironment(made("brax"), 2).get_state()
    apart = native.NativeEnvironment(made("dm_env"), 2).get_state()
    # Brax's own state has a reward, done and truncation beside the others.
    assert len(held) == len(apart) + 3


def test_starts_differ_between_members_and_episodes():
    environment = native.NativeEnvironment(made("gymnax"), 64, seed=0)
    first = environment.reset().observation["count"].numpy()
    second = environment.reset().observation["count"].numpy()
    assert 16 < first.sum() < 48
    assert (first != second).any()


class Changed(counters.DmEnv):
    def __init__(self, change):
        self._change = change

    def step(self, state, action):
        state, time_step = super().step(state, action)
        return self._change(self, state, time_step)


def _branch(_, state, time_step):
    return (state, time_step if state.count > 0 else None)


def _numpy(_, state, time_step):
    return state, time_step._replace(reward=np.sum(np.asarray(state.count)))


def _assigns(self, state, time_step):
    self.last = state.time
    return state, time_step


def _other_dtype(_, state, time_step):
    return state._replace(count=state.count * 1.0), time_step


def _players(_, state, time_step):
    return state, time_step._replace(reward=jnp.zeros(3))


def _prints(_, state, time_step):
    jax.debug.print("{}", state.count)
    return state, time_step


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (_branch, r"step: got a Python `if`, loop or NumPy function .* use jnp.where"),
        (_numpy, r"step: got a Python `if`, loop or NumPy function .* use jnp.where"),
        (_assigns, r"reset or step that assigns to last of the Changed, expe"),
        (_other_dtype, r"got float32 \[\] at state.count, expected int32 \[\], as the"),
        (
            _players,
            r"step: got reward of shape \[3\], expected a number, .* one",
        ),
        (
            lambda *_: 1 / 0,
            r"step: got ZeroDivisionError \(division by zero\), exp",
        ),
    ],
)
def test_what_cannot_be_traced_is_said_at_once(change, message):
    with pytest.raises(ValueError, match=message):
        native.from_jax(Changed(change), "dm_env", action_spec=counters.ACTION)


def test_a_callback_is_refused_when_an_environment_is_made():
    dynamics = native.from_jax(Changed(_prints), "dm_env", action_spec=counters.ACTION)
    with pytest.raises(ValueError, match=r"got calls of .*callback.*, which only"):
        native.NativeEnvironment(dynamics, 2)


@pytest.mark.parametrize(
    "bounds", [(0, 1), {"tme": (0, 1)}, {"time": 5}, {"time": (0, 1, 2)}]
)
def test_bounds_of_other_parts_are_refused(bounds):
    with pytest.raises(ValueError, match=r"observation_bounds: got .* a pair"):
        made("dm_env", observation_bounds=bounds)


def test_a_class_in_place_of_an_object_is_refused():
    with pytest.raises(ValueError, match=r"got the class DmEnv, .*; write DmEnv\(\)"):
        native.from_jax(counters.DmEnv, "dm_env", action_spec=counters.ACTION)


def test_another_form_is_refused():
    with pytest.raises(ValueError, match="form: got 'gym', expected one of gymnax, br"):
        native.from_jax(None, "gym", action_spec=counters.ACTION)


def test_a_missing_library_says_what_to_install(monkeypatch):
    from tfrl.environments import extras

    monkeypatch.setattr(extras, "is_installed", lambda *_: False)
    with pytest.raises(ImportError, match=r"pip install 'tfrl\[gymnax\]'"):
        suites.find_dynamics("gymnax/Nothing")


def test_what_is_kept_is_of_the_releases_of_all_that_a_library_requires(
    monkeypatch, tmp_path
):
    """Brax requires MuJoCo, for example, which is a part of its programs."""
    pytest.importorskip("gymnax")
    monkeypatch.setenv("TFRL_CACHE_DIR", str(tmp_path))
    loading._store.cache_clear()
    versions = {name: importlib.metadata.version(name) for name in ("flax", "pip")}
    monkeypatch.setattr(
        importlib.metadata,
        "version",
        lambda name, real=importlib.metadata.version: versions.get(name) or real(name),
    )
    traces = []

    class Traced(tracing.Traced):
        def __init__(self, *arguments):
            traces.append(arguments)
            super().__init__(*arguments)

    monkeypatch.setattr(tracing, "Traced", Traced)
    numbers = []
    for changed in (None, "pip", "flax", None):
        if changed:
            versions[changed] = "0"
        loading.load.__wrapped__("gymnax/CartPole-v1")
        numbers.append(len(traces))
    loading._store.cache_clear()
    assert numbers == [1, 1, 2, 2]


COLD_AND_WARM = """
import sys
import tfrl
ppo = tfrl.PPO(
    "gymnax/CartPole-v1", seed=0, num_envs=2, collect_steps_per_iteration=4,
    num_epochs=1, minibatch_size=4, fc_layer_params=(4,),
)
ppo.learn(8, progress=False)
print("jax" in sys.modules, ppo.loop.info().environment_steps)
"""


@pytest.mark.slow
def test_a_warm_start_imports_no_jax(tmp_path):
    pytest.importorskip("gymnax")
    printed = []
    for _ in range(2):
        ended = subprocess.run(
            [sys.executable, "-c", COLD_AND_WARM],
            capture_output=True,
            text=True,
            check=False,
            cwd=ROOT,
            env={**os.environ, "TFRL_CACHE_DIR": str(tmp_path)},
        )
        assert ended.returncode == 0, ended.stderr
        printed.append(ended.stdout.split()[-2:])
    assert [x for x, _ in printed] == ["True", "False"]
    assert printed[0][1] == printed[1][1] != "0"
