import pickle
import threading

import numpy as np
import pytest
import tensorflow as tf

from tfrl.environments import (
    batched_py_environment,
    py_environment,
    suite_gym,
    tf_py_environment,
    wrappers,
)
from tfrl.specs import array_spec
from tfrl.trajectories import time_step as ts


def make_cartpole():
    return wrappers.NumpyStateWrapper(suite_gym.load("CartPole-v1"))


def play(environment, steps):
    """Plays alternating actions; episodes of CartPole end and begin at random."""
    return [environment.step(np.int64(i % 2)).observation for i in range(steps)]


def test_an_environment_without_a_state_continues_in_another_object():
    environment = make_cartpole()
    environment.seed(3)
    play(environment, 5)
    state = pickle.loads(pickle.dumps(environment.get_state()))
    expected = play(environment, 80)
    resumed = make_cartpole()
    resumed.set_state(state)
    np.testing.assert_array_equal(play(resumed, 80), expected)


def test_a_checkpoint_holds_the_environment_as_one_array(tmp_path):
    environment = make_cartpole()
    environment.seed(3)
    play(environment, 5)
    checkpoint = tf.train.Checkpoint(environment=environment.numpy_state)
    path = checkpoint.save(str(tmp_path / "checkpoint"))
    expected = play(environment, 80)
    resumed = make_cartpole()
    restored = tf.train.Checkpoint(environment=resumed.numpy_state)
    restored.restore(path).assert_consumed()
    np.testing.assert_array_equal(play(resumed, 80), expected)
    array = resumed.numpy_state.environment
    assert (array.ndim, array.dtype) == (1, np.uint8)


def test_the_state_is_that_of_the_moment_of_the_save(tmp_path, scripted):
    environment = wrappers.NumpyStateWrapper(scripted(length=9))
    checkpoint = tf.train.Checkpoint(environment=environment.numpy_state)
    environment.reset()
    paths = []
    for _ in range(2):
        environment.step(0)
        paths.append(checkpoint.save(str(tmp_path / "checkpoint")))
    checkpoint.restore(paths[0])
    assert environment.count == 1
    assert environment.step(0).observation == 2


def test_an_environment_saves_its_own_state_where_it_can(scripted):
    inner = scripted(length=9)
    environment = wrappers.NumpyStateWrapper(inner)
    environment.reset()
    state = environment.get_state()
    environment.step(0)
    environment.set_state(state)
    assert environment.wrapped_env() is inner
    assert inner.count == 0


def test_it_gives_a_tensor_environment_a_state():
    environment = tf_py_environment.TFPyEnvironment(make_cartpole())
    environment.reset()
    state = environment.get_state()
    expected = [environment.step([1]).observation.numpy() for _ in range(30)]
    environment.set_state(state)
    again = [environment.step([1]).observation.numpy() for _ in range(30)]
    np.testing.assert_array_equal(again, expected)


def test_a_rendered_environment_is_saved_without_its_picture():
    environment = make_cartpole()
    environment.reset()
    environment.render()
    environment.set_state(environment.get_state())
    assert environment.render().ndim == 3


def test_a_batch_is_saved_as_a_whole():
    def make():
        return wrappers.NumpyStateWrapper(
            batched_py_environment.BatchedPyEnvironment(
                [suite_gym.load("CartPole-v1") for _ in range(7)], multithreading=False
            )
        )

    environment, resumed = make(), make()
    environment.reset()
    resumed.set_state(environment.get_state())
    for _ in range(20):
        actions = np.ones(7, np.int64)
        np.testing.assert_array_equal(
            environment.step(actions).observation, resumed.step(actions).observation
        )


def test_what_can_neither_save_itself_nor_be_pickled_is_an_error():
    class Locked(py_environment.PyEnvironment):
        def __init__(self):
            super().__init__()
            self.lock = threading.Lock()

        def observation_spec(self):
            return array_spec.ArraySpec((), np.float32)

        action_spec = observation_spec

        def _reset(self):
            return ts.restart(np.float32(0))

        def _step(self, action):
            return ts.transition(np.float32(0), 0.0)

    with pytest.raises(
        TypeError,
        match=r"env: got an environment that cannot be pickled \(.*lock.*\), expected "
        "one that has get_state and set_state, or can be pickled; write these methods",
    ):
        wrappers.NumpyStateWrapper(Locked())
