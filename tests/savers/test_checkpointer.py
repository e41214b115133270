"""Acme's Checkpointer: when it saves, what it restores and where."""

import collections
import warnings

import keras
import numpy as np
import pytest
import tensorflow as tf

from tfrl import networks, savers
from tfrl.savers import checkpoint_names


@pytest.fixture
def clock(monkeypatch):
    """Sets the time that checkpointers see with `clock(minutes)`."""

    def set_time(minutes):
        monkeypatch.setattr("time.monotonic", lambda: 60.0 * minutes)

    set_time(1000)
    return set_time


def make(directory, variable, **arguments):
    return savers.Checkpointer(
        {"variable": variable}, directory=directory, add_uid=False, **arguments
    )


def test_the_first_save_saves_and_then_every_time_delta(tmp_path, clock):
    checkpointer = make(tmp_path, tf.Variable(0.0), time_delta_minutes=10)
    saved = []
    for minute in (1000, 1009.9, 1010, 1019, 1021):
        clock(minute)
        saved.append(checkpointer.save())
    assert saved == [True, False, True, False, True]


def test_force_saves_in_any_case(tmp_path, clock):
    variable = tf.Variable(0.0)
    checkpointer = make(tmp_path, variable)
    checkpointer.save()
    variable.assign(1.0)
    assert checkpointer.save(force=True)
    restored = tf.Variable(-1.0)
    make(tmp_path, restored)
    assert float(restored) == 1.0


def test_a_new_one_restores_and_counts_on(tmp_path):
    variable = tf.Variable(3.0)
    checkpointer = make(tmp_path, variable, time_delta_minutes=0, max_to_keep=2)
    for _ in range(3):
        checkpointer.save()
    restored = tf.Variable(-1.0)
    again = make(tmp_path, restored, max_to_keep=2)
    assert float(restored) == 3.0
    again.save()
    found = checkpoint_names.newest_first(again.directory)
    assert [checkpoint_names.number_of(path) for path in found] == [4, 3]


def test_restore_brings_saved_values_back(tmp_path):
    variable = tf.Variable(1.0)
    checkpointer = make(tmp_path, variable)
    checkpointer.save()
    variable.assign(2.0)
    checkpointer.restore()
    assert float(variable) == 1.0


def test_only_the_newest_is_kept(tmp_path):
    checkpointer = make(tmp_path, tf.Variable(0.0), time_delta_minutes=0)
    for _ in range(3):
        checkpointer.save()
    assert len(checkpoint_names.newest_first(checkpointer.directory)) == 1


def test_one_of_every_n_hours_is_kept(tmp_path, monkeypatch):
    now = [1e9]
    monkeypatch.setattr("time.time", lambda: now[0])
    checkpointer = make(
        tmp_path,
        tf.Variable(0.0),
        time_delta_minutes=0,
        keep_checkpoint_every_n_hours=1,
    )
    for hours in (0.5, 1.5, 1.6, 2.7, 2.8):
        now[0] = 1e9 + 3600 * hours
        checkpointer.save()
    numbers = [
        checkpoint_names.number_of(path)
        for path in checkpoint_names.newest_first(checkpointer.directory)
    ]
    assert numbers == [5, 4, 2]


def test_a_disabled_one_does_nothing(tmp_path):
    checkpointer = make(tmp_path, tf.Variable(0.0), enable_checkpointing=False)
    assert not checkpointer.save(force=True)
    checkpointer.restore()
    assert checkpointer.directory is None
    assert list(tmp_path.iterdir()) == []


def test_the_default_directory_is_below_the_identifier_of_the_run(
    tmp_path, monkeypatch
):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("TFRL_ID", "run7")
    checkpointer = savers.Checkpointer({}, subdirectory="learner")
    assert checkpointer.directory == str(
        tmp_path / "tfrl" / "run7" / "checkpoints" / "learner"
    )


def test_weights_that_are_not_finite_are_not_saved(tmp_path):
    variable = tf.Variable(0.0)
    checkpointer = make(tmp_path, variable)
    variable.assign(np.nan)
    with pytest.raises(savers.CheckpointError, match="variable"):
        checkpointer.save()
    variable.assign(1.0)
    assert checkpointer.save()


def test_a_negative_time_is_refused(tmp_path):
    with pytest.raises(ValueError, match="time_delta: got -60"):
        make(tmp_path, tf.Variable(0.0), time_delta_minutes=-1)


def test_a_layer_is_saved_and_restored_once_it_is_built(tmp_path):
    layer = keras.layers.Dense(2)
    checkpointer = make(tmp_path, layer, time_delta_minutes=0)
    with pytest.warns(RuntimeWarning, match=r"'variable' has no .*create_variables\("):
        checkpointer.save()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        checkpointer.save()
        layer.build((None, 3))
        checkpointer.save()
        restored = keras.layers.Dense(2)
        make(tmp_path, restored)
        restored.build((None, 3))
    np.testing.assert_array_equal(restored.kernel, layer.kernel)


def test_a_network_that_could_not_take_its_weights_is_refused(tmp_path):
    def network(**arguments):
        return networks.Sequential([keras.layers.Dense(2)], **arguments)

    saved = network(input_spec=tf.TensorSpec([3]))
    make(tmp_path, saved).save()
    with pytest.raises(ValueError, match=r"'variable' has a network without variables"):
        make(tmp_path, network())
    restored = network(input_spec=tf.TensorSpec([3]))
    make(tmp_path, restored)
    for old, new in zip(saved.variables, restored.variables, strict=True):
        np.testing.assert_array_equal(old, new)


Place = collections.namedtuple("Place", ["row", "name"])


class Counter(savers.Saveable):
    """Counts in Python."""

    def __init__(self):
        self.state = {"place": Place(np.zeros(2, np.int64), "start"), "seen": [1, None]}

    def save(self):
        return self.state

    def restore(self, state):
        self.state = state


def test_saveables_are_saved_as_arrays_and_text(tmp_path):
    counter = Counter()
    checkpointer = make(tmp_path, counter)
    counter.state = {"place": Place(np.arange(2), "end"), "seen": [1, None, 2]}
    checkpointer.save()
    restored = Counter()
    make(tmp_path, restored)
    np.testing.assert_array_equal(restored.state["place"].row, [0, 1])
    assert restored.state["place"].name == "end"
    assert restored.state["seen"] == [1, None, 2]


def test_a_saveable_whose_state_would_need_a_pickle_is_refused(tmp_path):
    counter = Counter()
    counter.state = {"place": object()}
    with pytest.raises(TypeError, match=r"\['place'\]: got a builtins.object"):
        make(tmp_path, counter).save()
