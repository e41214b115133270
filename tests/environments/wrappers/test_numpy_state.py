import pickle
import threading

import numpy as np
import pytest
import tensorflow as tf

from tfrl import testing
from tfrl.environments import (
    batched_py_environment,
    suite_gym,
    tf_py_environment,
    wrappers,
)
from tfrl.utils import numpy_storage


def make_cartpole():
    return wrappers.NumpyStateWrapper(suite_gym.load("CartPole-v1"))


def play(environment, steps):
    """Plays alternating actions; episodes of CartPole end and begin at random."""
    return [environment.step(np.int64(i % 2)).observation for i in range(steps)]


def test_the_state_continues_in_another_object():
    environment = make_cartpole()
    environment.seed(3)
    play(environment, 5)
    state = environment.get_state()
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


class Forgetful(testing.CountingEnvironment):
    """Has no state, or one that checkpoints cannot hold."""

    given = None

    def get_state(self):
        if self.given is None:
            raise NotImplementedError("Forgetful.get_state: none")
        return self.given


def test_an_environment_without_a_state_is_refused():
    with pytest.raises(NotImplementedError, match=r"Forgetful\.get_state: none"):
        wrappers.NumpyStateWrapper(Forgetful(3))


def test_a_state_that_checkpoints_cannot_hold_is_refused():
    environment = Forgetful(3)
    environment.given = {"lock": threading.Lock()}
    with pytest.raises(
        TypeError, match=r"nest\['lock'\]: got a _thread.lock, expected"
    ):
        wrappers.NumpyStateWrapper(environment)


class MakesAFile:
    """Its pickle creates a file when it is loaded."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return open, (str(self.path), "w")


def test_a_pickle_is_not_loaded_and_begins_a_new_episode(tmp_path, scripted):
    """A pickle can be code."""
    pickled = numpy_storage.NumpyState()
    pickled.environment = np.frombuffer(
        pickle.dumps(MakesAFile(tmp_path / "created")), np.uint8
    )
    path = tf.train.Checkpoint(environment=pickled).save(str(tmp_path / "checkpoint"))
    environment = wrappers.NumpyStateWrapper(scripted(length=9))
    environment.reset()
    environment.step(0)
    restored = tf.train.Checkpoint(environment=environment.numpy_state)
    with pytest.warns(
        RuntimeWarning, match=r"not with b'tfrl nest.* begins a new episode"
    ):
        restored.restore(path)
    assert not (tmp_path / "created").exists()
    assert environment.step(0).is_first()


@pytest.mark.parametrize("was_used", [False, True])
def test_a_restored_environment_goes_on_in_tensorflow(tmp_path, was_used):
    saved = make_cartpole()
    play(saved, 5)
    path = tf.train.Checkpoint(environment=saved.numpy_state).save(tmp_path / "x")
    resumed = make_cartpole()
    environment = tf_py_environment.TFPyEnvironment(resumed)
    if was_used:
        environment.reset()
    tf.train.Checkpoint(environment=resumed.numpy_state).restore(path)
    time_step = environment.current_time_step()
    np.testing.assert_array_equal(
        time_step.observation[0], saved.current_time_step().observation
    )
    np.testing.assert_array_equal(
        environment.step(tf.constant([1])).observation[0], saved.step(1).observation
    )
