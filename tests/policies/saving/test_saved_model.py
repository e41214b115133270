import shutil

import pytest
import tensorflow as tf

from tfrl.policies import policy_saver, random_tf_policy
from tfrl.policies.saving import saved_model
from tfrl.specs import tensor_spec
from tfrl.trajectories import time_step as ts


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    path = tmp_path_factory.mktemp("saved") / "policy"
    policy = random_tf_policy.RandomTFPolicy(
        ts.time_step_spec(tf.TensorSpec([2], tf.float32)),
        tensor_spec.BoundedTensorSpec([], tf.int32, 0, 1),
    )
    policy_saver.PolicySaver(policy).save(str(path))
    return path


@pytest.fixture
def policy(saved, tmp_path):
    return shutil.copytree(saved, tmp_path / "policy")


def test_a_whole_policy_has_no_fault(policy):
    assert saved_model.find_fault(policy) is None


def test_a_missing_policy_and_a_file_in_its_place_are_faults(tmp_path):
    assert saved_model.find_fault(tmp_path / "policy") == "is missing"
    (tmp_path / "policy").write_text("")
    assert saved_model.find_fault(tmp_path / "policy") == "is not a directory"


@pytest.mark.parametrize(
    "name",
    [
        "saved_model.pb",
        "policy_specs.pbtxt",
        "variables/variables.index",
        "variables/variables.data-00000-of-00001",
    ],
)
@pytest.mark.parametrize("size", [None, 0, 5])
def test_a_file_that_is_missing_or_cut_short_is_a_fault(policy, name, size):
    if size is None:
        (policy / name).unlink()
    else:
        (policy / name).write_bytes((policy / name).read_bytes()[:size])
    assert saved_model.find_fault(policy).startswith("is damaged (")


def test_a_file_that_never_ends_is_a_fault(policy):
    (policy / "saved_model.pb").unlink()
    (policy / "saved_model.pb").symlink_to("/dev/zero")
    fault = saved_model.find_fault(policy)
    assert fault == "is damaged (OSError: saved_model.pb is no file)"


def test_variables_that_do_not_match_their_checksums_are_a_fault(policy):
    path = policy / "variables" / "variables.data-00000-of-00001"
    content = path.read_bytes()
    path.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    assert "hecksum" in saved_model.find_fault(policy)
