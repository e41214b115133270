"""The bytes in which a loop's position is saved, and what damaged ones do."""

import pickle
import warnings

import numpy as np
import pytest
import tensorflow as tf

from tfrl import testing
from tfrl.environments import tf_py_environment, wrappers
from tfrl.train.loops import position


class Corridor(testing.CorridorEnvironment):
    """Returns what it is told as its state."""

    given = None

    def get_state(self):
        return super().get_state() if self.given is None else self.given


def make_position(environment=None):
    environment = tf_py_environment.TFPyEnvironment(environment or Corridor())
    where = position.Position(environment)
    where.set(environment.reset(), {"lstm": (tf.zeros([1, 2]), tf.ones([1], tf.int64))})
    return where


class MakesAFile:
    """Its pickle creates a file when it is loaded."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return open, (str(self.path), "w")


def test_a_position_comes_back_with_the_structure_and_dtypes_it_had():
    where, other = make_position(), make_position()
    time_step, policy_state = where.get()
    other.set(None, None)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        other.deserialize(where.serialize())
    assert type(other.get()[0]) is type(time_step)
    tf.nest.map_structure(
        np.testing.assert_array_equal, other.get(), (time_step, policy_state)
    )
    assert other.get()[1]["lstm"][1].dtype == tf.int64


def test_a_pickle_in_place_of_a_state_is_not_loaded(tmp_path):
    where = make_position()
    data = pickle.dumps(
        (where.get()[0].observation.numpy(), MakesAFile(tmp_path / "x"))
    )
    with pytest.warns(
        RuntimeWarning,
        match=r"state of the environment Corridor cannot be restored: it begins with "
        r".* not with b'tfrl nest 1.* The run continues with a new episode",
    ):
        where.deserialize(data)
    assert not (tmp_path / "x").exists()
    assert not where.is_set
    # The pickle does create the file when it is loaded.
    pickle.loads(data)[1].close()
    assert (tmp_path / "x").exists()


def test_a_pickle_in_an_array_is_not_loaded(tmp_path):
    """NumPy's own format can hold pickles as well."""
    whole = make_position().serialize()
    header = whole[: whole.index(b"\n") + 1]
    with open(tmp_path / "a.npz", "wb") as file:
        nest = np.frombuffer(b'{"array": "0"}', np.uint8)
        bad = np.array([MakesAFile(tmp_path / "x")], object)
        np.savez(file, nest=nest, **{"0": bad})
    where = make_position()
    with pytest.warns(RuntimeWarning, match=r"damaged .*pickle.* new episode"):
        where.deserialize(header + (tmp_path / "a.npz").read_bytes())
    assert not (tmp_path / "x").exists()
    assert not where.is_set


@pytest.mark.parametrize("length", [0, 5, 12, 13, 100, -1])
def test_bytes_cut_short_begin_a_new_episode(length):
    data = make_position().serialize()
    where = make_position()
    with pytest.warns(RuntimeWarning, match=r"cannot be restored: it .* new episode"):
        where.deserialize(data[:length])
    assert not where.is_set


def test_damaged_bytes_begin_a_new_episode():
    data = make_position().serialize()
    rng = np.random.default_rng(0)
    for _ in range(50):
        damaged = np.frombuffer(data, np.uint8).copy()
        damaged[rng.integers(0, len(data), 20)] = rng.integers(0, 256, 20)
        where = make_position()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            where.deserialize(damaged.tobytes())
        # The damage may hit bytes that mean nothing.
        assert where.is_set == (not caught)


def test_a_state_that_the_environment_refuses_begins_a_new_episode():
    data = make_position(wrappers.TimeLimit(Corridor(), 3)).serialize()
    where = make_position()
    with pytest.warns(RuntimeWarning, match=r"Corridor cannot be restored: .*Error"):
        where.deserialize(data)
    assert not where.is_set


def test_a_value_of_another_type_is_no_state_with_one_warning():
    corridor = Corridor()
    corridor.given = {"rng": [np.zeros(2), {"set": {1}}]}
    where = make_position(corridor)
    with pytest.warns(
        RuntimeWarning,
        match=r"leave out the state of the environment Corridor.*"
        r"\['state'\]\['rng'\]\[1\]\['set'\]: got a builtins.set, expected an array",
    ):
        data = where.serialize()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert where.serialize() == data
        where.deserialize(data)
    assert not where.is_set


def test_an_environment_without_a_state_is_named_with_one_warning():
    class Stateless(Corridor):
        def get_state(self):
            raise NotImplementedError("no get_state, expected one")

    where = make_position(wrappers.TimeLimit(Stateless(), 3))
    with pytest.warns(
        RuntimeWarning, match=r"environment Stateless.* no get_state, ex"
    ):
        where.serialize()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        where.serialize()
