import numpy as np
import tensorflow as tf

from tfrl.networks import ActorDistributionRnnNetwork
from tfrl.specs import tensor_spec

OBSERVATION = tf.TensorSpec([2], tf.float32)
ACTIONS = {
    "turn": tensor_spec.BoundedTensorSpec([], tf.int64, 0, 2),
    "force": tensor_spec.BoundedTensorSpec([2], tf.float32, -1, 1),
}


def make(action_spec=ACTIONS, **kwargs):
    small = {"input_fc_layer_params": (4,), "output_fc_layer_params": (4,)}
    small["activation_fn"] = "tanh"
    return ActorDistributionRnnNetwork(
        OBSERVATION, action_spec, lstm_size=(3,), seed=0, **small, **kwargs
    )


def test_a_distribution_for_each_action_and_step():
    net = make()
    net.create_variables()
    distributions, state = net(tf.ones([5, 6, 2]), step_type=tf.ones([5, 6], tf.int32))
    assert distributions["turn"].batch_shape == [5, 6]
    assert distributions["turn"].dtype == tf.int64
    assert distributions["force"].batch_shape == [5, 6]
    assert distributions["force"].event_shape == [2]
    assert [s.shape for s in state] == [[5, 3], [5, 3]]
    assert net(tf.ones([5, 2]))[0]["force"].batch_shape == [5]


def test_distributions_in_a_sequence_are_those_of_single_steps():
    net = make()
    observations = tf.random.stateless_normal([2, 5, 2], [0, 1])
    step_types = tf.constant([[0, 1, 2, 0, 1], [1, 1, 1, 1, 2]])
    together, _ = net(observations, step_type=step_types)
    state = net.get_initial_state(2)
    for t in range(5):
        single, state = net(observations[:, t], step_types[:, t], state)
        np.testing.assert_allclose(
            single["turn"].logits, together["turn"].logits[:, t], atol=1e-6
        )
        np.testing.assert_allclose(
            single["force"].mean(), together["force"].mean()[:, t], atol=1e-6
        )


def test_masked_actions_are_not_drawn():
    net = make(ACTIONS["turn"])
    mask = tf.constant([[False, True, False]] * 4)
    distribution, _ = net(tf.ones([4, 2]), mask=mask)
    np.testing.assert_array_equal(distribution.sample(seed=1), [1] * 4)


def test_projections_of_the_user_are_made_with_a_seed_if_they_take_one():
    made = []

    def projection(spec, seed):
        from tfrl.networks import CategoricalProjectionNetwork

        made.append(seed)
        return CategoricalProjectionNetwork(spec, seed=seed)

    make(ACTIONS["turn"], discrete_projection_net=projection)
    assert isinstance(made[0], int)
