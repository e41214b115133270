"""Snapshots give what the network gives, in a process that knows nothing of tfrl."""

import json
import os
import subprocess
import sys

import keras
import numpy as np
import pytest
import tensorflow as tf

from tfrl import networks, savers
from tfrl.acme.tf import utils as tf2_utils
from tfrl.savers import checkpoint_names

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


def test_a_policy_returns_its_distributions_parameters_and_moments(elsewhere, made):
    distribution = made["policy"](INPUTS)[0]
    found = elsewhere["policy"]
    for name in ("mean", "mode", "stddev"):
        expected = getattr(distribution, name)()
        np.testing.assert_allclose(found[name], expected, rtol=1e-5, err_msg=name)
    assert {"loc", "scale_diag"} <= found.keys()


def test_a_critic_of_values_returns_their_logits_and_mean(elsewhere, made):
    distribution = made["critic"]((INPUTS, INPUTS[:, :2]))[0]
    found = elsewhere["critic"]
    np.testing.assert_allclose(found["mean"], distribution.mean(), rtol=1e-5)
    np.testing.assert_allclose(found["logits"], distribution.logits, rtol=1e-5)
    np.testing.assert_allclose(found["values"], [-1, 0, 1], atol=1e-6)


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


def test_the_first_save_saves_and_then_every_time_delta(tmp_path, monkeypatch):
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
    with pytest.raises(savers.CheckpointError, match=r"weights of 'dense' .*bias"):
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
    core = Core()
    snapshotter = savers.Snapshotter({"core": core}, directory=tmp_path, add_uid=False)
    with pytest.raises(ValueError, match="inputs of 'core' is not known"):
        snapshotter.save()
    tf2_utils.create_variables(core, [SPEC])
    assert snapshotter.save()
    loaded = load(snapshotter, "core")
    output, (state,) = loaded(INPUTS, (tf.ones([2, 2]),))
    np.testing.assert_allclose(output, INPUTS @ np.ones([3, 2]) + 1, rtol=1e-6)
    np.testing.assert_array_equal(state, output)
    assert len(loaded.trainable_variables) == 1
    core.w.assign(core.w * np.nan)
    with pytest.raises(savers.CheckpointError, match="weights of 'core'"):
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
