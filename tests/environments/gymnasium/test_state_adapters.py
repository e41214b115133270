"""Which environments and wrappers have a state, and that users can add others."""

import gymnasium
import numpy as np
import pytest
from gymnasium.envs import classic_control

from tfrl.environments import parallel_py_environment, py_environment, suite_gym
from tfrl.environments.gymnasium import state_adapters


class Noise(gymnasium.ObservationWrapper):
    """Adds numbers of its own generator; it has no adapter."""

    def __init__(self, env):
        super().__init__(env)
        self.rng = np.random.default_rng(5)
        self.offset = 0.0

    def observation(self, observation):
        self.offset = self.rng.normal()
        return observation + self.offset


class Described(Noise):
    """The same with an adapter."""


class Quiet(gymnasium.Wrapper):
    """Changes nothing."""


class WithMethods(Noise):
    """Saves itself and what it wraps."""

    def get_state(self):
        own = dict(self.rng.bit_generator.state)
        return {"own": own, "inner": state_adapters.get_state(self.env)}

    def set_state(self, state):
        self.rng.bit_generator.state = state["own"]
        state_adapters.set_state(self.env, state["inner"])


def describe():
    state_adapters.register(
        Described,
        lambda env: dict(env.rng.bit_generator.state),
        lambda env, state: setattr(env.rng.bit_generator, "state", state),
    )


@pytest.fixture(autouse=True)
def forget(monkeypatch):
    monkeypatch.setattr(state_adapters, "_registered", {})


def load(*gym_env_wrappers, name="CartPole-v1"):
    return suite_gym.load(name, gym_env_wrappers=gym_env_wrappers)


@pytest.mark.parametrize("outside", [(), (gymnasium.wrappers.OrderEnforcing,)])
def test_a_wrapper_that_nobody_knows_makes_an_environment_without_state(outside):
    environment = load(Noise, *outside)
    environment.reset()
    with pytest.raises(
        NotImplementedError,
        match=r"^Noise\.get_state: got the wrapper [\w.]+test_state_adapters:Noise "
        r"without the methods .* tfrl\.environments\.gymnasium\.state_adapters\."
        r"register\(Noise, get_state, set_state\), without the functions if it has no "
        r"state of its own",
    ):
        environment.get_state()


def test_an_environment_that_nobody_knows_has_no_state():
    class Unknown(classic_control.CartPoleEnv):
        """May hold more state than its base."""

    environment = suite_gym.wrap_env(Unknown())
    environment.reset()
    with pytest.raises(NotImplementedError, match=r"got the environment .*Unknown "):
        environment.get_state()


def test_a_registered_wrapper_continues_bit_for_bit(check_resuming):
    describe()
    check_resuming(lambda: load(Described))


def test_an_adapter_is_not_used_for_subclasses():
    describe()

    class More(Described):
        pass

    with pytest.raises(NotImplementedError, match=r"got the wrapper .*More"):
        load(More).get_state()


def test_a_class_can_be_registered_as_one_without_state(check_resuming):
    state_adapters.register(Quiet)
    check_resuming(lambda: load(Quiet))


def test_a_wrapper_with_methods_speaks_for_what_it_wraps(check_resuming):
    check_resuming(lambda: load(WithMethods))
    with pytest.raises(NotImplementedError, match="Noise"):
        load(Noise, WithMethods).get_state()


def test_an_adapter_goes_before_the_methods_of_a_class():
    state_adapters.register(WithMethods, lambda env: "own", lambda env, state: None)
    state = state_adapters.get_state(load(WithMethods).gym)
    assert state["states"][0] == "own"
    assert len(state["states"]) > 1


@pytest.mark.slow
def test_adapters_are_known_in_the_processes_of_environments():
    describe()
    environment = parallel_py_environment.ParallelPyEnvironment(
        [lambda: load(Described)] * 2
    )
    try:
        environment.reset()
        state = environment.get_state()
        expected = environment.step([0, 1])
        environment.set_state(state)
        again = environment.step([0, 1])
        np.testing.assert_array_equal(again.observation, expected.observation)
    finally:
        environment.close()


def test_the_state_of_other_wrappers_is_refused():
    environment = load(gymnasium.wrappers.RecordEpisodeStatistics)
    environment.reset()
    captured = py_environment.capture_state(environment)
    other = load()
    with pytest.raises(
        ValueError,
        match=r"state: got the state of .*CartPoleEnv in .*RecordEpisodeStatistics, "
        r"expected the state of .*OrderEnforcing; make the environment and its "
        r"wrappers as in the run",
    ):
        py_environment.restore_state(other, captured)


def test_the_state_is_a_copy_on_both_sides():
    gym_env = load(name="Pendulum-v1").gym
    gym_env.reset(seed=1)
    state = state_adapters.get_state(gym_env)
    inner = state["states"][-1]["state"]
    before = inner.copy()
    gym_env.unwrapped.state += 1
    np.testing.assert_array_equal(inner, before)
    state_adapters.set_state(gym_env, state)
    gym_env.unwrapped.state += 1
    np.testing.assert_array_equal(inner, before)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("CartPole-v1",), r"env_class: got 'CartPole-v1', expected a class"),
        ((Quiet, lambda env: 0), r"got <function .* and None, expected two functions"),
        ((Quiet, None, lambda env, state: 0), r"expected two functions, or neither"),
    ],
)
def test_what_cannot_be_an_adapter_is_an_error(arguments, message):
    with pytest.raises(TypeError, match=message):
        state_adapters.register(*arguments)


def test_every_environment_of_these_suites_has_a_state():
    folders = ("classic_control", "toy_text", "mujoco")
    made_elsewhere = ("mujoco_py", "Pusher-v4")
    for name, spec in gymnasium.registry.items():
        entry_point = str(spec.entry_point)
        suite = entry_point.removeprefix("gymnasium.envs.").partition(":")[0]
        if not suite.startswith(folders) or name in made_elsewhere:
            continue
        assert state_adapters._BUILT_IN.keys() & _classes_of(entry_point), name


def _classes_of(entry_point):
    module, _, name = entry_point.partition(":")
    found = getattr(__import__(module, fromlist=[name]), name)
    return {f"{found.__module__}:{found.__qualname__}"}


# These wrap any other wrapper, draw or convert.
WITHOUT_STATE = {
    "ArrayConversion",
    "HumanRendering",
    "JaxToNumpy",
    "JaxToTorch",
    "NumpyToTorch",
    "RecordVideo",
    "VectorizeTransformAction",
    "VectorizeTransformObservation",
    "VectorizeTransformReward",
}


@pytest.mark.parametrize(
    ("module", "without_state"),
    [(gymnasium.wrappers, {"vector"}), (gymnasium.wrappers.vector, WITHOUT_STATE)],
    ids=["single", "vector"],
)
def test_every_wrapper_of_gymnasium_has_a_state(module, without_state):
    for name in set(module.__all__) - without_state:
        try:
            found = getattr(module, name)
        except (ImportError, gymnasium.error.DependencyNotInstalled):
            continue  # jax and torch are not installed.
        assert f"{found.__module__}:{name}" in state_adapters._BUILT_IN
