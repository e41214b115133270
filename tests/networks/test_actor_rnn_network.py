import numpy as np
import tensorflow as tf

from tfrl.networks import ActorRnnNetwork
from tfrl.specs import BoundedTensorSpec

OBSERVATION = tf.TensorSpec([2], tf.float32)
ACTION = BoundedTensorSpec([2], tf.float32, [-1, 0], [1, 4])


def test_the_action_remembers_until_the_episode_begins_anew():
    net = ActorRnnNetwork(OBSERVATION, ACTION, None, (5,), (4,), (6,), seed=3)
    assert net.create_variables() == tf.TensorSpec([2], tf.float32)
    assert [s.shape for s in net.state_spec] == [[4], [4]]
    steps = tf.constant([[0, 1, 2, 0]])
    actions = net(tf.ones([1, 4, 2]), step_type=steps)[0][0, :, 1].numpy()
    assert len(set(actions[:3])) == 3
    np.testing.assert_allclose(actions[3], actions[0], rtol=1e-6)
    assert np.all(np.abs(actions - 2) < 0.1)


def test_defaults_and_initial_weights():
    net = ActorRnnNetwork(OBSERVATION, ACTION, seed=0)
    net.create_variables()
    kernels = {
        tuple(v.shape): np.abs(v.numpy()).max()
        for v in net.trainable_variables
        if len(v.shape) == 2
    }
    # (input, 200), (200, 100), the LSTM's two, (40, 200), (200, 100) and the last.
    assert len(kernels) == 6
    assert 0.98 * 2**-0.5 < kernels[2, 200] <= 2**-0.5
    assert 0.98 * 40**-0.5 < kernels[40, 200] <= 40**-0.5
    assert kernels[100, 2] <= 0.003


def test_path_of_tf_agents():
    from tfrl.agents.ddpg import actor_rnn_network

    assert actor_rnn_network.ActorRnnNetwork is ActorRnnNetwork
