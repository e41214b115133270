"""Acme's checkpoints: when they are saved, what they restore; its snapshots."""

import collections
import copy
import json
import os
import signal
import subprocess
import sys
import threading
import time
import warnings

import keras
import numpy as np
import pytest
import tensorflow as tf

from tfrl import networks
from tfrl.acme import core
from tfrl.acme.tf import savers
from tfrl.acme.tf import utils as tf2_utils
from tfrl.savers import checkpoint_names
from tfrl.savers.whole_checkpoints import CheckpointError


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
    with pytest.raises(CheckpointError, match="variable"):
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


class Counter(core.Saveable):
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


class Learner(savers.TFSaveable):
    """Adds 1 to a variable at each step, and may send its process a signal."""

    def __init__(self, signal_at=None):
        self.variable = tf.Variable(0)
        self.signal_at = signal_at
        self.name = "learner"

    @property
    def state(self):
        return {"variable": self.variable}

    def step(self):
        self.variable.assign_add(1)
        if int(self.variable) == self.signal_at:
            os.kill(os.getpid(), signal.SIGTERM)


def run(directory, learner, num_steps=None, **arguments):
    runner = savers.CheckpointingRunner(
        learner, directory=directory, add_uid=False, **arguments
    )
    runner.run(num_steps)
    return runner


def test_a_signal_ends_the_run_after_a_checkpoint(tmp_path):
    before = signal.getsignal(signal.SIGTERM)
    run(tmp_path, Learner(signal_at=3))
    assert signal.getsignal(signal.SIGTERM) is before
    learner = Learner()
    runner = run(tmp_path, learner, num_steps=4)
    assert int(learner.variable) == 7
    assert runner.get_directory() == str(tmp_path / "checkpoints" / "default")


def test_it_saves_while_it_runs(tmp_path):
    class Failing(Learner):
        def step(self):
            super().step()
            if int(self.variable) == 3:
                raise RuntimeError("out of data")

    with pytest.raises(RuntimeError, match="out of data"):
        run(tmp_path, Failing(), time_delta_minutes=0)
    learner = Learner()
    savers.CheckpointingRunner(learner, directory=tmp_path, add_uid=False)
    assert int(learner.variable) == 2


def test_an_object_without_steps_is_saved_alone(tmp_path, monkeypatch):
    slept, sleep, this_thread = [], time.sleep, threading.get_ident()
    monkeypatch.setattr(
        "time.sleep",
        lambda seconds: (
            slept.append if threading.get_ident() == this_thread else sleep
        )(seconds),
    )
    variable = tf.Variable(5)
    run(tmp_path, variable, num_steps=2, subdirectory="variable")
    assert slept == [1, 1]
    variable.assign(0)
    run(tmp_path, variable, num_steps=0, subdirectory="variable")
    assert int(variable) == 5


def test_other_attributes_are_those_of_the_object(tmp_path):
    runner = savers.CheckpointingRunner(Learner(), directory=tmp_path)
    assert runner.name == "learner"
    with pytest.raises(AttributeError):
        runner.nothing_of_this_name  # noqa: B018


SPEC = tf.TensorSpec([3])
INPUTS = np.linspace(-1, 1, 6, dtype=np.float32).reshape(2, 3)


def build(layers, spec=SPEC):
    network = networks.Sequential(layers, seed=0)
    tf2_utils.create_variables(network, spec)
    return network


@pytest.fixture(scope="module")
def made():
    dense = keras.layers.Dense(2)
    dense.build((None, 3))
    return {
        "dense": dense,
        "policy": build(
            [networks.LayerNormMLP([4]), networks.MultivariateNormalDiagHead(2)]
        ),
        "critic": build(
            [
                networks.CriticMultiplexer(),
                networks.DiscreteValuedHead(vmin=-1.0, vmax=1.0, num_atoms=3),
            ],
            [SPEC, tf.TensorSpec([2])],
        ),
        "recurrent": build([keras.layers.LSTMCell(4), keras.layers.Dense(2)]),
    }


@pytest.fixture(scope="module")
def snapshotter(made, tmp_path_factory):
    snapshotter = savers.Snapshotter(made, directory=tmp_path_factory.mktemp("saved"))
    assert snapshotter.save()
    return snapshotter


def load(snapshotter, name):
    return tf.saved_model.load(os.path.join(snapshotter.directory, name))


@pytest.fixture(scope="module")
def elsewhere(snapshotter):
    """What the snapshots return in a process that has TensorFlow alone."""
    code = f"""
import json, sys
import tensorflow as tf
inputs = tf.constant({INPUTS.tolist()})
load = lambda name: tf.saved_model.load({snapshotter.directory!r} + "/" + name)
recurrent = load("recurrent")
state = recurrent.initial_state(2)
_, state = recurrent(inputs, state)
output, _ = recurrent(inputs, state)
results = {{
    "dense": load("dense")(inputs),
    "policy": load("policy")(inputs),
    "critic": load("critic")((inputs, inputs[:, :2])),
    "recurrent": output,
}}
print(json.dumps(tf.nest.map_structure(lambda t: t.numpy().tolist(), results)))
print([m for m in ("tfrl", "tensorflow_probability") if m in sys.modules])
"""
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd="/"
    )
    assert result.returncode == 0, result.stderr
    values, modules = result.stdout.splitlines()
    assert modules == "[]"
    return json.loads(values)


@pytest.mark.slow
def test_a_layer_returns_the_same_elsewhere(elsewhere, made):
    np.testing.assert_allclose(elsewhere["dense"], made["dense"](INPUTS), rtol=1e-6)


@pytest.mark.slow
def test_a_policy_returns_its_distributions_parameters_and_moments(elsewhere, made):
    distribution = made["policy"](INPUTS)[0]
    found = elsewhere["policy"]
    for name in ("mean", "mode", "stddev"):
        expected = getattr(distribution, name)()
        np.testing.assert_allclose(found[name], expected, rtol=1e-5, err_msg=name)
    assert {"loc", "scale_diag"} <= found.keys()


@pytest.mark.slow
def test_a_critic_of_values_returns_their_logits_and_mean(elsewhere, made):
    distribution = made["critic"]((INPUTS, INPUTS[:, :2]))[0]
    found = elsewhere["critic"]
    np.testing.assert_allclose(found["mean"], distribution.mean(), rtol=1e-5)
    np.testing.assert_allclose(found["logits"], distribution.logits, rtol=1e-5)
    np.testing.assert_allclose(found["values"], [-1, 0, 1], atol=1e-6)


@pytest.mark.slow
def test_a_recurrent_network_takes_and_returns_its_state(elsewhere, made):
    network = made["recurrent"]
    _, state = network(INPUTS, network_state=network.get_initial_state(2))
    output, _ = network(INPUTS, network_state=state)
    np.testing.assert_allclose(elsewhere["recurrent"], output, rtol=1e-5)


def test_gradients_are_those_of_the_network(snapshotter, made):
    loaded = load(snapshotter, "dense")
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(loaded(INPUTS) ** 2)
    found = tape.gradient(loss, loaded.trainable_variables)
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(made["dense"](INPUTS) ** 2)
    expected = tape.gradient(loss, made["dense"].trainable_variables)
    by_shape = {tuple(g.shape): g for g in found}
    assert len(by_shape) == len(loaded.variables) == 2
    for gradient in expected:
        np.testing.assert_allclose(by_shape[tuple(gradient.shape)], gradient, rtol=1e-5)


def make_dense(directory, **arguments):
    layer = keras.layers.Dense(2)
    layer.build((None, 3))
    return layer, savers.Snapshotter(
        {"dense": layer}, directory=directory, add_uid=False, **arguments
    )


def test_the_first_snapshot_is_saved_and_then_every_time_delta(tmp_path, monkeypatch):
    layer, snapshotter = make_dense(tmp_path)
    saved = []
    for minutes in (1000, 1029, 1030):
        monkeypatch.setattr("time.monotonic", lambda now=60.0 * minutes: now)
        saved.append(snapshotter.save())
    assert saved == [True, False, True]
    layer.bias.assign([1.0, 2.0])
    assert snapshotter.save(force=True)
    np.testing.assert_array_equal(
        load(snapshotter, "dense")(tf.zeros([1, 3])), [[1.0, 2.0]]
    )
    assert os.listdir(snapshotter.directory) == ["dense"]


def test_weights_that_are_not_finite_leave_the_snapshot_as_it_is(tmp_path):
    layer, snapshotter = make_dense(tmp_path)
    layer.bias.assign([1.0, 2.0])
    snapshotter.save()
    layer.bias.assign([np.nan, 2.0])
    with pytest.raises(CheckpointError, match=r"weights of 'dense' .*bias"):
        snapshotter.save(force=True)
    np.testing.assert_array_equal(
        load(snapshotter, "dense")(tf.zeros([1, 3])), [[1.0, 2.0]]
    )


def test_a_replacement_that_was_interrupted_is_ended(tmp_path, monkeypatch):
    layer, snapshotter = make_dense(tmp_path)
    snapshotter.save()
    layer.bias.assign([1.0, 2.0])
    rename = os.rename

    def interrupted(source, target):
        if source.endswith(".new"):
            raise KeyboardInterrupt
        rename(source, target)

    with monkeypatch.context() as patch:
        patch.setattr("os.rename", interrupted)
        with pytest.raises(KeyboardInterrupt):
            snapshotter.save(force=True)
    _, snapshotter = make_dense(tmp_path)
    np.testing.assert_array_equal(
        load(snapshotter, "dense")(tf.zeros([1, 3])), [[1.0, 2.0]]
    )
    snapshotter.save()
    assert os.listdir(snapshotter.directory) == ["dense"]


def test_a_layer_that_is_called_with_a_nest_keeps_the_nest(tmp_path):
    layer = keras.layers.Add()
    layer([INPUTS, INPUTS])
    snapshotter = savers.Snapshotter({"add": layer}, directory=tmp_path)
    snapshotter.save()
    found = load(snapshotter, "add")([INPUTS, INPUTS])
    np.testing.assert_array_equal(found, 2 * INPUTS)


@pytest.mark.slow
def test_layers_in_a_list_of_a_layer_are_saved_too(tmp_path):
    layer = keras.layers.RNN([keras.layers.GRUCell(2), keras.layers.GRUCell(3)])
    sequences = np.tile(INPUTS[:, np.newaxis], [1, 4, 1])
    expected = layer(sequences)
    snapshotter = savers.Snapshotter({"rnn": layer}, directory=tmp_path)
    snapshotter.save()
    found = load(snapshotter, "rnn")
    np.testing.assert_allclose(found(sequences), expected, rtol=1e-5)
    assert len(found.variables) == len(layer.weights)


def saved(layer, directory):
    snapshotter = savers.Snapshotter({"net": layer}, directory=directory)
    assert snapshotter.save()
    return load(snapshotter, "net")


@pytest.mark.parametrize("is_called", [True, False])
def test_layers_made_of_layers_need_no_input_shape(tmp_path, is_called):
    layer = networks.LayerNormMLP([10, 10])
    if is_called:
        layer(INPUTS.astype(np.float64))
    else:
        tf2_utils.create_variables(layer, [SPEC])
    loaded = saved(layer, tmp_path)
    np.testing.assert_allclose(loaded(INPUTS), layer(INPUTS), rtol=1e-6)
    assert len(loaded.trainable_variables) == 6


class Scaled(keras.layers.Layer):
    """Multiplies a dense layer's outputs, `[B, 2]`, by integers `[B]`."""

    def __init__(self):
        super().__init__()
        self.dense = keras.layers.Dense(2)

    def call(self, inputs, factors):
        return self.dense(inputs) * tf.cast(factors, tf.float32)[:, tf.newaxis]


def test_create_variables_tells_of_several_inputs_and_of_their_dtypes(tmp_path):
    layer = Scaled()
    tf2_utils.create_variables(layer, [SPEC, tf.TensorSpec([], tf.int32)])
    loaded = saved(layer, tmp_path)
    expected = layer(INPUTS, tf.constant([2, 3]))
    np.testing.assert_allclose(loaded(INPUTS, [2, 3]), expected, rtol=1e-6)


def test_a_call_that_fails_tells_nothing_of_the_inputs(tmp_path):
    layer = networks.LayerNormMLP([2])
    with pytest.raises(TypeError, match="positional"):
        layer(INPUTS, INPUTS)
    layer(INPUTS)
    np.testing.assert_allclose(saved(layer, tmp_path)(INPUTS), layer(INPUTS), rtol=1e-6)


class Core(tf.Module):
    """A core like Sonnet's."""

    w = None

    def initial_state(self, batch_size):
        return (tf.zeros([batch_size, 2]),)

    def __call__(self, inputs, state):
        if self.w is None:
            self.w = tf.Variable(tf.ones([inputs.shape[-1], 2]))
        state = (inputs @ self.w + state[0],)
        return state[0], state


def test_a_core_of_sonnet_takes_and_returns_its_state(tmp_path):
    arguments = {"directory": tmp_path, "add_uid": False}
    with pytest.raises(ValueError, match="inputs of 'core' is not known"):
        savers.Snapshotter({"core": Core()}, **arguments).save()
    core = Core()
    tf2_utils.create_variables(core, [SPEC])
    core = copy.deepcopy(core)
    snapshotter = savers.Snapshotter({"core": core}, **arguments)
    assert snapshotter.save()
    loaded = load(snapshotter, "core")
    output, (state,) = loaded(INPUTS, (tf.ones([2, 2]),))
    np.testing.assert_allclose(output, INPUTS @ np.ones([3, 2]) + 1, rtol=1e-6)
    np.testing.assert_array_equal(state, output)
    assert len(loaded.trainable_variables) == 1
    core.w.assign(core.w * np.nan)
    with pytest.raises(CheckpointError, match="weights of 'core'"):
        snapshotter.save(force=True)


def test_something_that_is_not_a_layer_is_refused(tmp_path):
    with pytest.raises(TypeError, match=r"'net' is a function, expected a Keras layer"):
        savers.Snapshotter({"net": lambda x: x}, directory=tmp_path)


def test_a_layer_that_does_not_say_its_inputs_is_refused(tmp_path):
    class Scale(keras.layers.Layer):
        def get_build_config(self):
            return None

        def call(self, inputs):
            return 2 * inputs

    layer = Scale()
    layer(INPUTS)
    snapshotter = savers.Snapshotter({"scale": layer}, directory=tmp_path)
    with pytest.raises(ValueError, match=r"inputs of 'scale' is not known"):
        snapshotter.save()


def test_checkpoints_and_snapshots_of_a_layer_that_is_built_late(tmp_path):
    model = keras.layers.Dense(2)
    checkpointer = tf2_utils.Checkpointer(
        objects_to_save={"model": model},
        objects_to_snapshot={"model": model},
        directory=tmp_path,
        add_uid=False,
    )
    with pytest.warns(RuntimeWarning, match="create_variables") as warned:
        saved = [checkpointer.save() for _ in range(3)]
    assert saved == [True, False, False]
    assert len(warned) == 1
    tf2_utils.create_variables(model, [SPEC])
    assert checkpointer.save()
    expected = model(INPUTS)
    loaded = tf.saved_model.load(str(tmp_path / "snapshots" / "model"))
    np.testing.assert_allclose(loaded(INPUTS), expected, rtol=1e-6)
    directory = tmp_path / "checkpoints" / "default"
    assert len(checkpoint_names.newest_first(directory)) == 1


def test_a_snapshot_is_called_and_saved_as_its_network(tmp_path):
    layer = keras.layers.Dense(2)
    tf2_utils.create_variables(layer, [tf.TensorSpec([3])])
    snapshot = savers.make_snapshot(layer)
    assert isinstance(snapshot, savers.Snapshot)
    inputs = np.ones([4, 3], np.float32)
    np.testing.assert_allclose(snapshot(inputs), layer(inputs), rtol=1e-6)
    tf.saved_model.save(snapshot, str(tmp_path))
    loaded = tf.saved_model.load(str(tmp_path))
    np.testing.assert_allclose(loaded(inputs), layer(inputs), rtol=1e-6)
    assert len(loaded.trainable_variables) == 2


def test_what_a_checkpoint_may_hold():
    assert isinstance(tf.Variable(0.0), savers.Checkpointable)
    assert isinstance(keras.layers.Dense(1), savers.Checkpointable)
    assert issubclass(savers.SaveableAdapter, savers.PythonState)
