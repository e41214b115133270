import numpy as np
import pytest
import tensorflow as tf

from tfrl.networks import (
    actor_distribution_network,
    mask_splitter_network,
    q_network,
)
from tfrl.specs import tensor_spec

SEEN = tf.TensorSpec([4], tf.float32)
ACTION = tensor_spec.BoundedTensorSpec([], tf.int32, 0, 2)
SPEC = {"seen": SEEN, "mask": tf.TensorSpec([3], tf.bool)}
X = {"seen": tf.ones([2, 4]), "mask": tf.constant([[True, False, True]] * 2)}


def split(observation):
    return observation["seen"], observation["mask"]


def q_net():
    return q_network.QNetwork(SEEN, ACTION, seed=1)


def test_mask_is_dropped():
    net = mask_splitter_network.MaskSplitterNetwork(
        split, q_net(), input_tensor_spec=SPEC
    )
    assert net.create_variables() == tf.TensorSpec([3], tf.float32)
    values, state = net(X)
    np.testing.assert_array_equal(values, net.wrapped_network(X["seen"])[0])
    assert state == ()
    assert len(net.variables) == len(net.wrapped_network.variables) == 6


def test_mask_is_passed_on():
    actor = actor_distribution_network.ActorDistributionNetwork(SEEN, ACTION, seed=0)
    net = mask_splitter_network.MaskSplitterNetwork(
        split, actor, passthrough_mask=True, input_tensor_spec=SPEC
    )
    net.create_variables()
    distribution, _ = net(X)
    np.testing.assert_array_equal(distribution.probs_parameter()[:, 1], [0.0, 0.0])
    assert net.output_spec is actor.output_spec


def test_variables_may_be_made_from_what_the_wrapped_network_knows():
    net = mask_splitter_network.MaskSplitterNetwork(split, q_net())
    assert net.create_variables() == tf.TensorSpec([3], tf.float32)
    assert len(net.trainable_variables) == 6


def test_copy_has_weights_of_its_own_unless_a_network_is_given():
    net = mask_splitter_network.MaskSplitterNetwork(
        split, q_net(), input_tensor_spec=SPEC
    )
    assert net.copy().wrapped_network is not net.wrapped_network
    other = q_net()
    assert net.copy(wrapped_network=other).wrapped_network is other


def test_specs_have_to_fit():
    wrong = {**SPEC, "seen": tf.TensorSpec([5], tf.float32)}
    with pytest.raises(ValueError, match=r"input_tensor_spec: .*\(5,\).*expected"):
        mask_splitter_network.MaskSplitterNetwork(
            split, q_net(), input_tensor_spec=wrong
        )
