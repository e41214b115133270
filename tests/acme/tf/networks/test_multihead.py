import keras
import numpy as np
import pytest
import tensorflow as tf

from tfrl.acme.tf.networks import multihead
from tfrl.networks import sequential
from tfrl.networks.heads import distributional


def test_outputs_are_stacked_along_a_last_axis():
    heads = multihead.Multihead([tf.square, keras.layers.Rescaling(10.0)])
    np.testing.assert_array_equal(
        heads(tf.constant([[2.0, 3.0]])), [[[4, 20], [9, 30]]]
    )


def test_distributions_are_listed():
    heads = multihead.Multihead(
        [distributional.MultivariateNormalDiagHead(2) for _ in range(3)]
    )
    distributions = heads(tf.ones([4, 5]))
    assert [d.batch_shape for d in distributions] == [[4]] * 3


def test_a_copy_has_heads_of_its_own():
    network = sequential.Sequential(
        [multihead.Multihead([keras.layers.Dense(1), keras.layers.Dense(1)])],
        tf.TensorSpec([3]),
        seed=0,
    )
    copied = network.copy()
    for each in (network, copied):
        each.create_variables()
        assert len(each.variables) == 4
    assert not {id(v) for v in copied.variables} & {id(v) for v in network.variables}


def test_no_heads_are_an_error():
    with pytest.raises(ValueError, match="expected at least one head"):
        multihead.Multihead([])
