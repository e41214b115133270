"""Exports act as the policy does, and need only their own packages."""

import json
import subprocess
import sys

import keras
import numpy as np
import pytest
import tensorflow as tf

from tests.policies import saved_elsewhere
from tfrl import agents, networks
from tfrl.environments import extras
from tfrl.networks import (
    actor_distribution_network,
    q_network,
    q_rnn_network,
    sequential,
)
from tfrl.policies import (
    actor_policy,
    greedy_policy,
    policy_saver,
    q_policy,
    temporal_action_smoothing,
)
from tfrl.policies.exporting import checking, formats, named_function
from tfrl.specs import tensor_spec
from tfrl.trajectories import time_step as ts
from tfrl.utils import tensor_normalizer

VECTOR = tensor_spec.BoundedTensorSpec([4], tf.float32, -2.0, 2.0)
CHOICES = tensor_spec.BoundedTensorSpec([], tf.int64, 0, 2)
ARM = tensor_spec.BoundedTensorSpec([2], tf.float32, [-1.0, 0.0], [0.5, 3.0])
PICTURE = tensor_spec.BoundedTensorSpec([20, 20, 3], tf.uint8, 0, 255)
NEEDS = {
    "onnx": not all(map(extras.is_installed, ("tf2onnx", "onnx", "onnxruntime"))),
    "litert": not extras.is_installed("ai_edge_litert"),
}
WITHOUT_EXTRAS = ["numpy", "savedmodel"]
WITH_EXTRAS = [
    pytest.param(name, marks=pytest.mark.skipif(lacks, reason="needs tfrl[export]"))
    for name, lacks in NEEDS.items()
]


def stirred(policy):
    """Gives each variable random numbers, since biases and states begin at zero."""
    generator = np.random.default_rng(0)
    for variable in policy.variables():
        noise = generator.normal(size=variable.shape) * 0.3
        variable.assign(variable + tf.cast(noise, variable.dtype))
    return greedy_policy.GreedyPolicy(policy)


def values_of(network, observation_spec, splitter=None):
    return q_policy.QPolicy(
        ts.time_step_spec(observation_spec),
        CHOICES,
        network,
        observation_and_action_constraint_splitter=splitter,
    )


def make_vector():
    network = q_network.QNetwork(VECTOR, CHOICES, fc_layer_params=(8, 8))
    return stirred(values_of(network, VECTOR))


def make_masked_dict():
    spec = {
        "camera": PICTURE,
        "gear": tensor_spec.BoundedTensorSpec([], tf.int64, 0, 3),
        "mask": tensor_spec.BoundedTensorSpec([3], tf.int32, 0, 1),
    }

    def split(observation):
        rest = {key: observation[key] for key in ("camera", "gear")}
        return rest, observation["mask"]

    seen = split(spec)[0]
    arguments = networks.observation_encoder(
        seen, conv_layer_params=((4, 5, 2), (4, 3, 1))
    )
    encoder = networks.EncodingNetwork(seen, fc_layer_params=(8,), **arguments)
    network = sequential.Sequential([encoder, keras.layers.Dense(3)], input_spec=seen)
    return stirred(values_of(network, spec, split))


def make_normalized_arm():
    normalizer = tensor_normalizer.StreamingTensorNormalizer(VECTOR)
    normalizer.update(tf.random.stateless_normal([50, 4], [1, 2], 1.0, 3.0))
    network = actor_distribution_network.ActorDistributionNetwork(
        VECTOR, ARM, fc_layer_params=(8,)
    )
    return stirred(
        actor_policy.ActorPolicy(
            ts.time_step_spec(VECTOR), ARM, network, observation_normalizer=normalizer
        )
    )


def make_recurrent():
    network = q_rnn_network.QRnnNetwork(
        VECTOR,
        CHOICES,
        input_fc_layer_params=(6,),
        lstm_size=(5,),
        output_fc_layer_params=(4,),
    )
    return stirred(values_of(network, VECTOR))


def make_dreamer():
    agent = agents.DreamerAgent(
        ts.time_step_spec(VECTOR),
        ARM,
        None,
        sizes=agents.dreamer.Sizes(16, 8, 8, classes=3, depth=2, stoch=4, blocks=4),
        seed=1,
    )
    return stirred(agent.policy)


KINDS = [
    make_vector,
    make_masked_dict,
    make_normalized_arm,
    make_recurrent,
    make_dreamer,
]


@pytest.mark.parametrize("format", ["numpy", *WITH_EXTRAS[:1]])
@pytest.mark.parametrize(
    "make",
    [
        pytest.param(make_vector, marks=pytest.mark.slow),
        *KINDS[1:],
    ],
)
def test_every_kind_of_policy_acts_alike(make, format, tmp_path):
    policy = make()
    # It is checked where it is made.
    path = formats.export(policy, tmp_path / formats.FORMATS[format].file, format)
    act = formats.FORMATS[format].load(path)
    function = named_function.NamedFunction(policy)
    inputs = checking.random_inputs(function, 30, seed=5)
    outputs = act(inputs)
    # The same by the policy's own words.
    observation, state = tf.nest.pack_sequence_as(
        (policy.time_step_spec.observation, policy.policy_state_spec),
        [tf.constant(x) for x in inputs.values()],
    )
    expected = policy.action(ts.transition(observation, tf.zeros([30])), state)
    np.testing.assert_allclose(outputs["action"], expected.action, 1e-4, 1e-5)
    assert outputs["action"].dtype == expected.action.dtype.as_numpy_dtype
    states = sorted(name for name in outputs if name.startswith("next_state/"))
    for name, each in zip(states, tf.nest.flatten(expected.state), strict=True):
        np.testing.assert_allclose(outputs[name], each, 1e-4, 1e-5)
    has_logits = make not in (make_normalized_arm, make_dreamer)
    assert ("logits" in outputs) == has_logits


@pytest.mark.slow
@pytest.mark.parametrize("format", ["savedmodel", *WITH_EXTRAS[1:]])
@pytest.mark.parametrize("make", KINDS)
def test_every_kind_of_policy_is_written_in_the_other_formats(make, format, tmp_path):
    path = tmp_path / formats.FORMATS[format].file
    assert formats.export(make(), path, format).exists()
    assert [*tmp_path.iterdir()] == [path]


@pytest.mark.slow
@pytest.mark.parametrize("format", ["savedmodel", *WITH_EXTRAS[1:]])
def test_a_recurrent_policy_is_written(format, tmp_path):
    path = tmp_path / formats.FORMATS[format].file
    assert formats.export(make_recurrent(), path, format).exists()
    with pytest.raises(ValueError, match=r"there is one already; give overwrite=True"):
        formats.export(None, path, format)


@pytest.mark.parametrize("format", ["numpy", *WITH_EXTRAS[:1]])
def test_an_export_replaces_only_an_export_of_its_format_that_it_may(format, tmp_path):
    path = tmp_path / formats.FORMATS[format].file
    formats.export(make_vector(), path, format)
    before = path.read_bytes()
    with pytest.raises(ValueError, match=r"there is one already; give overwrite=True"):
        formats.export(None, path, format)
    path.write_bytes(before + b"\n# older" * (format == "numpy"))
    formats.export(make_vector(), path, format, overwrite=True)
    # Names of tensors in ONNX's files are new each time.
    assert (path.read_bytes() == before) == (format == "numpy")
    path.write_bytes(b"mine")
    with pytest.raises(ValueError, match=r"something that tfrl did not write, and kee"):
        formats.export(None, path, format, overwrite=True)
    assert path.read_bytes() == b"mine"


@pytest.mark.parametrize("ending", [".py", ".onnx", ".tflite", ""])
@pytest.mark.parametrize("format", formats.FORMATS)
def test_a_file_has_the_ending_of_its_format(monkeypatch, tmp_path, format, ending):
    monkeypatch.setattr(formats, "find", formats.FORMATS.get)
    if formats.FORMATS[format].file.endswith(ending or "saved_model"):
        return
    path = tmp_path / f"policy{ending}"
    with pytest.raises(ValueError, match=r"^path: got '.*', expected a name such as "):
        formats.export(None, path, format, overwrite=True)
    assert not path.exists()


@pytest.mark.parametrize("name", ["policy.py", "policy.npz"])
def test_both_files_of_numpys_code_are_kept_if_they_are_the_users(tmp_path, name):
    (tmp_path / name).write_text("mine")
    with pytest.raises(ValueError, match=rf"{name}', where there is something that"):
        formats.export(None, tmp_path / "policy.py", "numpy", overwrite=True)
    assert (tmp_path / name).read_text() == "mine"


@pytest.mark.parametrize(
    ("make", "most"),
    [
        (make_vector, 30),
        pytest.param(make_masked_dict, 110, marks=pytest.mark.slow),
        pytest.param(make_recurrent, 90, marks=pytest.mark.slow),
    ],
)
def test_numpys_code_is_short_and_needs_numpy_alone(make, most, tmp_path):
    policy = make()
    path = formats.export(policy, tmp_path / "policy.py", "numpy")
    assert len(path.read_text().splitlines()) <= most
    if make is not make_vector:
        return
    program = (
        "import json, sys, numpy as np, policy\n"
        "x = np.array([[1, 0, -1, 0.5], [0, 2, 0, 0]], np.float32)\n"
        "out = policy.act({'observation': x})\n"
        "assert not {'tensorflow', 'tfrl', 'keras'} & {*sys.modules}\n"
        "print(json.dumps(out['action'].tolist()))"
    )
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, check=True)
    x = np.array([[1, 0, -1, 0.5], [0, 2, 0, 0]], np.float32)
    assert json.loads(done.stdout) == policy.predict(x)[0].tolist()
    # The arrays are no pickles.
    assert all(
        array.dtype != object for array in np.load(tmp_path / "policy.npz").values()
    )


def test_a_file_that_acts_otherwise_is_deleted(tmp_path, monkeypatch):
    def write(function, path):
        formats._write_numpy(function, path)
        arrays = dict(np.load(path.with_suffix(".npz")))
        arrays["w0"] = arrays["w0"] * 1.001
        np.savez(path.with_suffix(".npz"), **arrays)

    wrong = formats.FORMATS["numpy"]._replace(write=write)
    monkeypatch.setitem(formats.FORMATS, "numpy", wrong)
    with pytest.raises(
        ValueError,
        match=r"^format: what was written as numpy does not act .*logits differs by .*"
        r"and was deleted; choose another format\.$",
    ):
        formats.export(make_vector(), tmp_path / "policy.py", "numpy")
    assert not [*tmp_path.iterdir()]


@pytest.mark.skipif(NEEDS["onnx"], reason="needs tfrl[export]")
def test_a_converter_says_nothing_beside_the_one_line(tmp_path, caplog, capfd):
    """It warns of products in float64, and has no complementary error function."""

    def policy_of(function):
        layers = [
            keras.layers.Dense(3, dtype="float64"),
            keras.layers.Lambda(lambda x: tf.cast(function(x), tf.float32)),
        ]
        network = sequential.Sequential(layers, input_spec=VECTOR)
        return stirred(values_of(network, VECTOR))

    formats.export(policy_of(tf.identity), tmp_path / "known.onnx", "onnx")
    with pytest.raises(ValueError, match=r"cannot be written as onnx \(.*Erfc"):
        formats.export(policy_of(tf.math.erfc), tmp_path / "lacked.onnx", "onnx")
    # TensorFlow itself may warn of the other graphs of this process.
    assert not [x for x in caplog.records if "tf2onnx" in x.pathname]
    assert capfd.readouterr() == ("", "")


def test_a_folder_of_other_things_stays(tmp_path):
    (tmp_path / "own").write_text("text")
    for format in WITHOUT_EXTRAS:
        with pytest.raises(ValueError, match=r"^path: got "):
            formats.export(make_vector(), tmp_path, format)
    assert (tmp_path / "own").read_text() == "text"


def test_a_missing_package_and_an_unknown_format_are_named(monkeypatch):
    monkeypatch.setattr(formats.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ImportError, match=r"tf2onnx, .*pip install 'tfrl\[export\]'"):
        formats.find("onnx")
    with pytest.raises(ValueError, match=r"^format: got 'torch', expected one of onnx"):
        formats.find("torch")


@pytest.mark.parametrize("format", ["numpy", "savedmodel"])
def test_rewards_may_be_vectors(tmp_path, format):
    observation = tf.TensorSpec([3], tf.float32)
    action = tensor_spec.BoundedTensorSpec([], tf.int32, 0, 1)
    spec = ts.time_step_spec(observation, tf.TensorSpec([2], tf.float32))
    network = networks.QNetwork(observation, action, fc_layer_params=(4,), seed=0)
    formats.export(
        q_policy.QPolicy(spec, action, network),
        tmp_path / formats.FORMATS[format].file,
        format,
    )


OBSERVATION = tf.TensorSpec([4], tf.float32)
DISCRETE = tensor_spec.BoundedTensorSpec([], tf.int64, 0, 2)
CONTINUOUS = tensor_spec.BoundedTensorSpec([2], tf.float32, -1.0, 1.0)
TIME_STEP = ts.time_step_spec(OBSERVATION)
X = np.random.default_rng(0).normal(size=(20, 4)).astype(np.float32)


def make_q_policy():
    net = q_network.QNetwork(OBSERVATION, DISCRETE, fc_layer_params=(8,), seed=0)
    return q_policy.QPolicy(TIME_STEP, DISCRETE, net)


def make_actor_policy():
    net = actor_distribution_network.ActorDistributionNetwork(
        OBSERVATION, CONTINUOUS, fc_layer_params=(8,), seed=0
    )
    return actor_policy.ActorPolicy(TIME_STEP, CONTINUOUS, net)


def convert(policy, path, **kwargs):
    policy_saver.PolicySaver(policy).save(str(path))
    return formats.saved_to_litert(str(path), **kwargs)


def step(x):
    return ts.transition(tf.constant(x), tf.zeros([len(x)]))


@pytest.mark.parametrize(
    "make", [pytest.param(make_q_policy, marks=pytest.mark.slow), make_actor_policy]
)
def test_greedy_policies_act_alike_with_built_in_operations(make, tmp_path):
    policy = greedy_policy.GreedyPolicy(make())
    _interpreter, runner = saved_elsewhere.tflite_runner(convert(policy, tmp_path))
    expected = policy.action(step(X)).action
    one_by_one = [
        runner(**saved_elsewhere.tflite_inputs(X[i : i + 1]))["action"][0]
        for i in range(len(X))
    ]
    np.testing.assert_allclose(one_by_one, expected, rtol=1e-4, atol=1e-6)
    assert one_by_one[0].dtype == expected.dtype.as_numpy_dtype
    # All at once, too: the batch size is open.
    np.testing.assert_allclose(
        runner(**saved_elsewhere.tflite_inputs(X))["action"],
        expected,
        rtol=1e-4,
        atol=1e-6,
    )


@pytest.mark.slow
def test_a_state_goes_in_and_out(tmp_path):
    policy = greedy_policy.GreedyPolicy(
        temporal_action_smoothing.TemporalActionSmoothing(make_actor_policy(), 0.5)
    )
    _interpreter, runner = saved_elsewhere.tflite_runner(convert(policy, tmp_path))
    state, average = policy.get_initial_state(1), np.zeros((1, 2), np.float32)
    for row in X[:3, np.newaxis]:
        expected = policy.action(step(row), state)
        outputs = runner(**saved_elsewhere.tflite_inputs(row), **{"1/1": average})
        np.testing.assert_allclose(
            outputs["action"], expected.action, rtol=1e-4, atol=1e-6
        )
        state, average = expected.state, outputs["state/1"]


@pytest.mark.slow
def test_a_policy_that_draws_random_numbers_needs_tensorflows_operations(tmp_path):
    with pytest.raises(
        ValueError, match=r"operations that TensorFlow Lite lacks.*Gree"
    ):
        convert(make_q_policy(), tmp_path)
    model = formats.saved_to_litert(str(tmp_path), select_tf_ops=True)
    assert b"FlexStatelessRandomUniform" in model


def test_a_path_without_policy_is_an_error(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"found no SavedModel"):
        formats.saved_to_litert(str(tmp_path))
