import os
import shutil

import numpy as np
import pytest
import tensorflow as tf

from tfrl import networks
from tfrl.policies import actor_policy, policy_saver
from tfrl.policies.saving import weights
from tfrl.specs import tensor_spec
from tfrl.trajectories import time_step as ts

OBSERVATION = tf.TensorSpec([2], tf.float32)
ACTION = tensor_spec.BoundedTensorSpec([1], tf.float32, -1, 1)


def _policy(seed, units=3):
    network = networks.ActorNetwork(
        OBSERVATION, ACTION, fc_layer_params=(units,), seed=seed
    )
    network.create_variables()
    return actor_policy.ActorPolicy(ts.time_step_spec(OBSERVATION), ACTION, network)


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    path = tmp_path_factory.mktemp("saved") / "policy"
    policy = _policy(0)
    policy_saver.PolicySaver(policy).save(str(path))
    return path, [variable.numpy() for variable in policy.variables()]


def _values(policy):
    return [variable.numpy() for variable in policy.variables()]


def _all_equal(these, those):
    return all(map(np.array_equal, these, those))


def test_a_policy_takes_the_weights_and_needs_no_graph(saved, tmp_path):
    path = shutil.copytree(saved[0], tmp_path / "policy")
    (path / "saved_model.pb").unlink()
    policy = _policy(1)
    assert not _all_equal(_values(policy), saved[1])
    weights.load(policy, path)
    assert _all_equal(_values(policy), saved[1])


def test_borrowed_weights_are_given_back_also_after_an_exception(saved):
    policy = _policy(1)
    before = _values(policy)

    def use():
        with weights.borrowed(policy, saved[0]):
            assert _all_equal(_values(policy), saved[1])
            raise KeyError

    with pytest.raises(KeyError):
        use()
    assert _all_equal(_values(policy), before)


def test_weights_of_other_shapes_change_nothing(saved):
    policy = _policy(1, units=4)
    before = _values(policy)
    message = r"\(variable .*: saved float32 \[2, 3\], the recipe's float32 \[2, 4\]\)"
    with pytest.raises(ValueError, match=message):
        weights.load(policy, saved[0])
    assert _all_equal(_values(policy), before)


def test_an_index_that_promises_more_than_the_file_holds_is_not_believed(tmp_path):
    """TensorFlow would allocate the tensor first; its values are 4 GB."""
    checkpoint = str(tmp_path / "variables")
    large = np.zeros([2**20, 2**10], np.float32)
    tf.raw_ops.SaveV2(
        prefix=checkpoint,
        tensor_names=["model_variables/0/.ATTRIBUTES/VARIABLE_VALUE"],
        shape_and_slices=[f"{2**20} {2**10} 0,1:-"],
        tensors=[large[:1]],
    )
    path = tmp_path / "policy" / "variables"
    path.mkdir(parents=True)
    for file in tmp_path.glob("variables.*"):
        os.rename(file, path / file.name)
    message = r"\(the index says that model.* has 4,294,967,296 bytes, and the data"
    with pytest.raises(ValueError, match=message):
        weights.load(_policy(0), path.parent)


def test_a_checksum_is_of_the_bits_of_the_variables(tmp_path):
    def saved(name, value):
        module = tf.Module()
        module.variable = tf.Variable(value)
        tf.saved_model.save(module, str(tmp_path / name))
        values = weights.read(tmp_path / name)
        assert list(values) == ["variable"]
        return weights.checksum(values)

    first = saved("first", [1.0, 2.0])
    assert saved("second", [1.0, 2.0]) == first
    assert saved("third", [1.0, np.nextafter(np.float32(2), np.float32(3))]) != first


def test_a_folder_without_weights_is_named(tmp_path):
    with pytest.raises(ValueError, match=r"^path: the weights .* cannot be read"):
        weights.read(tmp_path)
