import signal
import sys
import warnings
from unittest import mock

import gymnasium
import numpy as np
import pytest

from tfrl import testing
from tfrl.environments import (
    batched_py_environment,
    py_environment,
    suite_gym,
    tf_py_environment,
    wrappers,
)
from tfrl.environments.gymnasium import vector_py_environment
from tfrl.specs import array_spec, tensor_spec
from tfrl.trajectories import time_step as ts


class Countdown(py_environment.PyEnvironment):
    """Counts steps and ends at `length`; like the tutorials, it calls no super()."""

    def __init__(self, length=2):
        self._length = length
        self.actions = []

    def observation_spec(self):
        return array_spec.BoundedArraySpec((1,), np.int32, minimum=0)

    def action_spec(self):
        return array_spec.BoundedArraySpec((), np.int32, minimum=0, maximum=1)

    def _reset(self):
        self._count = 0
        return ts.restart(np.array([0], np.int32))

    def _step(self, action):
        self.actions.append(int(action))
        self._count += 1
        observation = np.array([self._count], np.int32)
        if self._count >= self._length:
            return ts.termination(observation, 1.0)
        return ts.transition(observation, 1.0)


class ResetsItself(Countdown):
    """The same, with the reset after a LAST step in its own `_step`."""

    def _step(self, action):
        if self._count >= self._length:
            return self.reset()
        return super()._step(action)


class Stateful(Countdown):
    def get_state(self):
        return self._count

    def set_state(self, state):
        self._count = state


def test_tensor_specs_become_array_specs(monkeypatch):
    plain, specs = Countdown(), {}
    for method in ("observation_spec", "action_spec", "reward_spec"):
        specs[method] = tensor_spec.from_spec(getattr(plain, method)())
        monkeypatch.setattr(Countdown, method, lambda self, name=method: specs[name])
    environment = Countdown()
    spec = environment.time_step_spec()
    assert isinstance(spec.observation, array_spec.ArraySpec)
    assert tensor_spec.from_spec(spec.observation) == specs["observation_spec"]
    assert isinstance(spec.reward, array_spec.ArraySpec)
    tf_environment = tf_py_environment.TFPyEnvironment(environment)
    assert tf_environment.action_spec() == specs["action_spec"]
    tf_environment.reset()
    assert tf_environment.step([1]).reward == 1.0
    assert environment.actions == [1]


def play(environment, steps):
    return [int(environment.step(0).step_type) for _ in range(steps)]


def test_step_before_reset_resets_and_ignores_the_action():
    environment = Countdown()
    time_step = environment.step(1)
    assert time_step.is_first()
    assert environment.actions == []


def test_step_after_last_resets_and_ignores_the_action():
    environment = Countdown(length=1)
    environment.reset()
    assert environment.step(0).is_last()
    time_step = environment.step(1)
    assert time_step.is_first()
    assert time_step.reward == 0.0
    assert time_step.discount == 1.0
    assert environment.actions == [0]


@pytest.mark.parametrize("handle_auto_reset", [True, False])
def test_environment_that_resets_itself_behaves_the_same(handle_auto_reset):
    environment = ResetsItself()
    environment._handle_auto_reset = handle_auto_reset
    reference = Countdown()
    assert play(environment, 8) == play(reference, 8) == [0, 1, 2, 0, 1, 2, 0, 1]


def test_without_auto_reset_step_goes_to_the_environment():
    environment = Countdown(length=1)
    environment._handle_auto_reset = False
    environment.reset()
    environment.step(0)
    environment.step(1)
    assert environment.actions == [0, 1]


def test_episodes_of_one_step_that_step_resets_are_warned_of_once():
    environment = Countdown(length=1)
    with pytest.warns(
        RuntimeWarning, match=r"Countdown\.step: .*handle_auto_reset=False"
    ):
        play(environment, 7)
    with warnings.catch_warnings(action="error"):
        play(environment, 9)
        play(Countdown(length=2), 20)
        by_hand = Countdown(length=1)
        for _ in range(5):
            by_hand.reset()
            by_hand.step(0)


def test_current_time_step_is_what_was_returned_last():
    environment = Countdown()
    with pytest.raises(
        ValueError, match=r"Countdown.current_time_step.*call reset\(\)"
    ):
        environment.current_time_step()
    assert environment.reset() is environment.current_time_step()
    assert environment.step(0) is environment.current_time_step()


@pytest.mark.parametrize("method", ["reset", "step"])
def test_overriding_a_final_method_is_an_error(method):
    with pytest.raises(TypeError, match=rf"Mine.{method}: .* name yours _{method}"):
        type("Mine", (Countdown,), {method: lambda self, *args: None})


def test_batched_without_batch_size_is_an_error():
    class Batch(Countdown):
        batched = True

    with pytest.raises(RuntimeError, match=r"Batch.batch_size: .* override"):
        _ = Batch().batch_size
    assert Countdown().batch_size is None


def test_batch_resets_only_when_every_member_has_ended():
    environment = Countdown()
    step_types = np.array([2, 1], np.int32)
    time_step = ts.restart(np.zeros((2, 1)), batch_size=2)._replace(
        step_type=step_types
    )
    assert not environment.should_reset(time_step)
    step_types[1] = 2
    assert environment.should_reset(time_step)


def test_default_specs():
    spec = Countdown().time_step_spec()
    assert spec.reward == array_spec.ArraySpec((), np.float32)
    assert spec.discount == array_spec.BoundedArraySpec((), np.float32, 0.0, 1.0)
    assert spec.step_type == array_spec.ArraySpec((), np.int32)
    assert spec.observation == Countdown().observation_spec()


def test_overridden_discount_spec_is_in_the_time_step_spec():
    class HalfDiscount(Countdown):
        def discount_spec(self):
            return array_spec.BoundedArraySpec((), np.float32, 0.0, 0.5)

    assert HalfDiscount().time_step_spec().discount.maximum == 0.5


@pytest.mark.parametrize(
    ("method", "arguments"),
    [
        ("seed", (1,)),
        ("get_info", ()),
        ("get_state", ()),
        ("set_state", (0,)),
        ("render", ()),
    ],
)
def test_unsupported_methods_name_environment_and_method(method, arguments):
    with pytest.raises(NotImplementedError, match=rf"Countdown.{method}: .*override"):
        getattr(Countdown(), method)(*arguments)


def test_leaving_the_context_closes():
    class Closing(Countdown):
        closed = False

        def close(self):
            self.closed = True

    with Closing() as environment:
        assert not environment.closed
    assert environment.closed


def test_captured_state_continues_in_mid_episode_and_at_its_end():
    for steps in (2, 3):
        environment = Stateful(length=2)
        play(environment, steps)
        captured = py_environment.capture_state(environment)
        expected = play(environment, 4)
        resumed = Stateful(length=2)
        py_environment.restore_state(resumed, captured)
        assert play(resumed, 4) == expected


def test_captured_time_step_is_a_copy():
    environment = Stateful()
    environment.reset()
    captured = py_environment.capture_state(environment)
    environment.current_time_step().observation[0] = 7
    assert captured["time_step"].observation[0] == 0


@pytest.mark.parametrize("threads", [None, False, True], ids=["alone", "one", "many"])
def test_a_call_of_exit_is_an_error_that_names_the_environment(threads):
    environment = testing.CountingEnvironment(5, errors={2: SystemExit(0)})
    action = np.int32(0)
    if threads is not None:
        environment = batched_py_environment.BatchedPyEnvironment(
            [environment], threads
        )
        action = action[np.newaxis]
    environment.reset()
    environment.step(action)
    with pytest.raises(
        RuntimeError,
        match=r"^step: got a call of sys\.exit\(0\) from environment CountingE.*, exp",
    ):
        environment.step(action)
    environment.close()


def test_an_exit_by_the_handler_of_a_signal_stays_one():
    class Interrupted(testing.CountingEnvironment):
        def _step(self, action):
            signal.raise_signal(signal.SIGTERM)
            return super()._step(action)

    environment = Interrupted(5)
    environment.reset()
    before = signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        with pytest.raises(SystemExit, match="143"):
            environment.step(np.int32(0))
    finally:
        signal.signal(signal.SIGTERM, before)


@pytest.mark.parametrize("wraps", [False, True])
def test_a_stop_iteration_is_an_error_that_names_the_environment(wraps):
    class Exhausted(testing.CountingEnvironment):
        def _reset(self):
            self.rows = iter([1])
            return super()._reset()

        def _step(self, action):
            next(self.rows)
            return super()._step(action)

    environment = Exhausted(5)
    if wraps:
        environment = wrappers.TimeLimit(environment, 4)
    environment.reset()
    environment.step(np.int32(0))
    with pytest.raises(
        RuntimeError, match=r"^step: got a StopIteration from environment Exhausted, e"
    ):
        environment.step(np.int32(0))
    environment.reset()


def test_an_environment_is_called_by_its_class_inside_of_wrappers():
    environment = Countdown()
    wrapped = wrappers.RunStats(wrappers.TimeLimit(environment, 3))
    assert py_environment.environment_name(wrapped) == "Countdown"


class Unregistered(gymnasium.Env):
    observation_space = gymnasium.spaces.Box(-1, 1, (2,))
    action_space = gymnasium.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        return self.observation_space.sample(), {}

    def step(self, action):
        return self.observation_space.sample(), 0.0, False, False, {}


def test_an_unregistered_gymnasium_environment_is_called_by_its_own_class():
    gym_env = gymnasium.wrappers.RecordEpisodeStatistics(Unregistered())
    single = suite_gym.wrap_env(gym_env, max_episode_steps=3)
    assert py_environment.environment_name(single) == "Unregistered"
    batch = batched_py_environment.BatchedPyEnvironment([single, single], False)
    name = py_environment.environment_name(batch)
    assert name == "BatchedPyEnvironment of Unregistered"
    vector = vector_py_environment.VectorPyEnvironment(
        gymnasium.vector.SyncVectorEnv([Unregistered])
    )
    name = py_environment.environment_name(vector)
    assert name == "SyncVectorEnv of Unregistered"


def test_a_mock_is_called_by_its_class():
    # Each wrapped_env() of a mock returns another mock.
    assert py_environment.environment_name(mock.MagicMock()) == "MagicMock"
