import numpy as np
import tensorflow as tf

from tfrl import testing
from tfrl.environments import tf_py_environment
from tfrl.policies import random_py_policy, random_tf_policy
from tfrl.specs import array_spec, tensor_spec
from tfrl.train.utils import spec_utils

REWARD = array_spec.ArraySpec((2,), np.float32, "reward")


def make_environment():
    return testing.CountingEnvironment(3, reward_spec=REWARD)


def test_the_specs_are_those_of_the_environment_as_tensors():
    environment = make_environment()
    observation, action, time_step = spec_utils.get_tensor_specs(environment)
    assert time_step.observation == observation
    assert observation == tensor_spec.from_spec(environment.observation_spec())
    assert action == tensor_spec.from_spec(environment.action_spec())
    # TF-Agents leaves it out.
    assert time_step.reward == tf.TensorSpec([2], tf.float32, "reward")


def test_environments_of_both_kinds_have_the_same_specs():
    environment = make_environment()
    wrapped = tf_py_environment.TFPyEnvironment(environment)
    assert spec_utils.get_tensor_specs(environment) == spec_utils.get_tensor_specs(
        wrapped
    )


def test_collected_frames_have_the_policys_specs():
    environment = make_environment()
    info = tf.TensorSpec([3], tf.float32, "info")
    py_policy = random_py_policy.RandomPyPolicy(
        environment.time_step_spec(), environment.action_spec()
    )
    tf_policy = random_tf_policy.RandomTFPolicy(
        *map(
            tensor_spec.from_spec,
            (environment.time_step_spec(), environment.action_spec()),
        ),
        info_spec=info,
    )
    get = spec_utils.get_collect_data_spec_from_policy_and_env
    assert get(environment, tf_policy) == tf_policy.trajectory_spec
    assert get(environment, tf_policy).policy_info == info
    assert get(environment, py_policy).policy_info == ()
