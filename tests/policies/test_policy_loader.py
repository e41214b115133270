"""Loading policies, and assembling them from a model and a checkpoint."""

import numpy as np
import pytest
import tensorflow as tf

from tfrl import drivers, environments, train
from tfrl.eval import evaluate
from tfrl.networks import q_network
from tfrl.policies import greedy_policy, policy_loader, policy_saver, q_policy
from tfrl.specs import array_spec, tensor_spec
from tfrl.trajectories import time_step as ts

OBSERVATION = tf.TensorSpec([4], tf.float32)
ACTION = tensor_spec.BoundedTensorSpec([], tf.int32, 0, 9)
TIME_STEP = ts.restart(np.arange(4, dtype=np.float32))


def make(seed):
    net = q_network.QNetwork(OBSERVATION, ACTION, fc_layer_params=(), seed=seed)
    policy = q_policy.QPolicy(ts.time_step_spec(OBSERVATION), ACTION, net)
    return greedy_policy.GreedyPolicy(policy)


@pytest.fixture
def saved(tmp_path):
    """A saved policy, and a checkpoint of it with other weights; returns those."""
    policy = make(0)
    saver = policy_saver.PolicySaver(policy)
    saver.save(str(tmp_path / "policy"))
    policy.update(make(1))
    saver.save_checkpoint(str(tmp_path / "checkpoint_20"))
    return policy


def test_a_policy_without_the_file_of_its_distribution_says_so(saved, tmp_path):
    (tmp_path / "policy" / "distributions.json").unlink()
    loaded = policy_loader.load(str(tmp_path / "policy"))
    assert loaded.action(TIME_STEP).action.shape == ()
    with pytest.raises(FileNotFoundError, match=r"found no distributions\.json in"):
        loaded.distribution(ts.restart(TIME_STEP.observation[np.newaxis], batch_size=1))


def check_equal(variables, expected):
    for one, other in zip(variables, expected, strict=True):
        np.testing.assert_array_equal(one, other)


def test_loads_the_policy_as_it_was_saved(saved, tmp_path):
    loaded = policy_loader.load(str(tmp_path / "policy"))
    check_equal(loaded.variables(), make(0).variables())
    assert loaded.action_spec.check_array(loaded.action(TIME_STEP).action)


@pytest.mark.slow
def test_a_policy_of_other_observations_is_refused_in_words(saved, tmp_path):
    def of(shape, dtype=tf.float32):
        environment = environments.random_py_environment.RandomPyEnvironment(
            array_spec.BoundedArraySpec(shape, dtype.as_numpy_dtype, 0, 1),
            array_spec.BoundedArraySpec([], np.int32, 0, 9),
        )
        return environments.TFPyEnvironment(environment)

    loaded = tf.saved_model.load(str(tmp_path / "policy"))
    told = (
        r"^policy: it was saved for observations float32\[4\], got an environment with "
    )
    for make in (
        lambda env: evaluate.Evaluator(env, loaded, 1),
        lambda env: drivers.DynamicStepDriver(env, loaded),
        lambda env: drivers.TFDriver(env, loaded, [], max_steps=1),
        lambda env: train.runs.video.record_video(env, loaded, tmp_path / "film.mp4"),
    ):
        with pytest.raises(ValueError, match=told + r"float32\[3\]; give"):
            make(of([3]))
        with pytest.raises(ValueError, match=told + r"int32\[4\]; give"):
            make(of([4], tf.int32))
    assert len(evaluate.Evaluator(of([4]), loaded, 1).run(max_steps=1).returns) == 1
    policy = policy_loader.load(str(tmp_path / "policy"))
    with pytest.raises(ValueError, match=told + r"float32\[3\]; give"):
        policy.action(ts.restart(np.zeros(3, np.float32)))


def test_loads_the_policy_with_the_weights_of_a_checkpoint(saved, tmp_path):
    loaded = policy_loader.load(
        str(tmp_path / "policy"), str(tmp_path / "checkpoint_20")
    )
    check_equal(loaded.variables(), saved.variables())


@pytest.mark.parametrize(
    "name",
    [
        "saved_model.pb",
        "policy_specs.pbtxt",
        pytest.param("variables/variables.index", marks=pytest.mark.slow),
        pytest.param("variables/variables.data-00000-of-00001", marks=pytest.mark.slow),
    ],
)
def test_a_damaged_policy_is_named(saved, tmp_path, name):
    file = tmp_path / "policy" / name
    file.write_bytes(file.read_bytes()[:20])
    with pytest.raises(ValueError, match=rf"{tmp_path}/policy.* cannot be (loaded|re)"):
        policy_loader.load(str(tmp_path / "policy"))


def test_a_materialized_policy_has_the_weights_of_the_checkpoint(saved, tmp_path):
    output = str(tmp_path / "whole")
    policy_loader.materialize_saved_model(
        str(tmp_path / "policy"), str(tmp_path / "checkpoint_20"), output
    )
    check_equal(policy_loader.load(output).variables(), saved.variables())
    check_equal(tf.saved_model.load(output).model_variables, saved.variables())


def test_materializing_overwrites_nothing(saved, tmp_path):
    path = str(tmp_path / "policy")
    with pytest.raises(ValueError, match=r"output_path: .* already exists"):
        policy_loader.materialize_saved_model(path, path, path)
