"""Networks of features of arms: an arm's reward depends on its own features alone."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from tfrl.bandits import networks
from tfrl.specs import bandit_spec_utils

SPEC = bandit_spec_utils.create_per_arm_observation_spec(2, 3, 4)


def _observation(seed=0, num_arms=4):
    rng = np.random.default_rng(seed)
    return {
        "global": tf.constant(rng.normal(size=[5, 2]), tf.float32),
        "per_arm": tf.constant(rng.normal(size=[5, num_arms, 3]), tf.float32),
    }


MAKERS = {
    "tower": lambda: networks.create_feed_forward_common_tower_network(
        SPEC, (6,), (5,), (4,), seed=0
    ),
    "product": lambda: networks.create_feed_forward_dot_product_network(
        SPEC, (6, 4), (4,), seed=0
    ),
}


@pytest.mark.parametrize("name", MAKERS)
def test_arms_are_judged_one_by_one(name):
    network = MAKERS[name]()
    observation = _observation()
    rewards, _ = network(observation)
    assert rewards.shape == [5, 4]
    for i in range(4):
        one = {**observation, "per_arm": observation["per_arm"][:, i : i + 1]}
        alone, _ = network(one)
        np.testing.assert_allclose(alone[:, 0], rewards[:, i], rtol=1e-5, atol=1e-6)
    assert network.trainable_variables


def test_a_tower_may_give_several_numbers_of_an_arm():
    network = networks.create_feed_forward_common_tower_network(
        SPEC, (6,), (5,), (4,), output_dim=7, seed=0
    )
    output, _ = network(_observation())
    assert output.shape == [5, 4, 7]


def test_the_seed_decides_the_weights():
    first, again = (MAKERS["tower"]()(_observation())[0].numpy() for _ in range(2))
    np.testing.assert_array_equal(first, again)


def test_embeddings_of_different_sizes_are_refused():
    with pytest.raises(ValueError, match="arm_layers: got 3 last units, expected 4"):
        networks.create_feed_forward_dot_product_network(SPEC, (4,), (3,))


def test_the_last_activation_is_that_of_the_rewards():
    network = networks.create_feed_forward_common_tower_network(
        SPEC, (6,), (5,), (4,), final_activation_fn_for_q_network=tf.exp, seed=0
    )
    rewards, _ = MAKERS["tower"]()(_observation())
    np.testing.assert_allclose(network(_observation())[0], tf.exp(rewards), rtol=1e-5)


def test_combiners_make_one_tensor_of_nests_of_features():
    spec = {
        "global": {"a": tf.TensorSpec([2]), "b": tf.TensorSpec([1])},
        "per_arm": {"c": tf.TensorSpec([4, 3]), "d": tf.TensorSpec([4, 1])},
    }
    network = networks.create_feed_forward_common_tower_network(
        spec,
        (6,),
        (5,),
        (4,),
        global_preprocessing_combiner=keras.layers.Concatenate(),
        arm_preprocessing_combiner=keras.layers.Concatenate(),
    )
    observation = tf.nest.map_structure(lambda x: tf.ones([5, *x.shape]), spec)
    assert network(observation)[0].shape == [5, 4]
