"""DmpoAgent: its losses in NumPy, and networks that share one of images."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from scipy import special

from tfrl import agents, networks
from tfrl.acme.tf.networks import vision
from tfrl.agents import DmpoAgent
from tfrl.distributions import discrete_valued
from tfrl.specs import BoundedTensorSpec
from tfrl.trajectories import time_step as ts
from tfrl.trajectories import trajectory
from tfrl.utils.random_numbers import seeds

OBSERVATION = tf.TensorSpec([1], tf.float32)
ACTION = BoundedTensorSpec([1], tf.float32, -2.0, 2.0)
ATOMS = np.linspace(-4, 4, 5)
NUM_SAMPLES = 3


class Critic(networks.Network):
    """Distributions over the atoms with logits `k (o + a) atoms / 4`."""

    def __init__(self, k, name="Critic"):
        super().__init__((OBSERVATION, ACTION), name=name)
        self._initial = k

    def build(self, input_shape=None):
        self._k = tf.Variable(self._initial)

    def call(self, inputs, training=False):
        atoms = tf.constant(ATOMS, tf.float32)
        logits = self._k * tf.add(*inputs) * atoms / 4
        return discrete_valued.DiscreteValuedDistribution(atoms, logits), ()


def policy_network(num_dimensions=1):
    head = networks.MultivariateNormalDiagHead(
        num_dimensions, init_scale=1.0, use_tfd_independent=True
    )
    layers = [networks.LayerNormMLP((4,), activate_final=True), head]
    return networks.Sequential(layers, seed=0)


def make_agent(**kwargs):
    arguments = {
        "policy_network": policy_network(),
        "critic_network": Critic(1.0),
        "target_critic_network": Critic(2.0),
        "policy_optimizer": keras.optimizers.Adam(1e-2),
        "critic_optimizer": keras.optimizers.SGD(0.1),
        "dual_optimizer": keras.optimizers.Adam(1e-2),
        "num_samples": NUM_SAMPLES,
        "gamma": 0.5,
        "n_step_update": 1,
        "seed": 3,
        **kwargs,
    }
    return agents.DmpoAgent(ts.time_step_spec(OBSERVATION), ACTION, **arguments)


# A transition, a termination, a truncation and a boundary.
FRAMES = trajectory.Trajectory(
    step_type=tf.constant([[1, 1], [1, 2], [1, 2], [2, 0]]),
    observation=tf.constant([[[0.5], [1.0]], [[1], [2]], [[-1], [-0.5]], [[1], [9]]]),
    action=tf.constant([[[1.0]], [[0.5]], [[-1.0]], [[0.0]]]) * tf.ones([4, 2, 1]),
    policy_info=(),
    next_step_type=tf.constant([[1, 1], [2, 0], [2, 0], [0, 1]]),
    reward=tf.constant([[1.0, 9], [-2, 9], [3, 9], [100, 9]]),
    discount=tf.constant([[1.0, 1], [0, 1], [1, 1], [1, 1]]),
)


def projected(values, probs):
    """Divides each probability between the two atoms around its value."""
    result = np.zeros(len(ATOMS))
    for value, prob in zip(np.clip(values, -4, 4), probs, strict=True):
        below = min(int((value + 4) // 2), len(ATOMS) - 2)
        share = (value - ATOMS[below]) / 2
        result[below] += prob * (1 - share)
        result[below + 1] += prob * share
    return result


def test_the_critics_target_is_the_mixture_over_the_drawn_actions():
    agent = make_agent()
    (seed,) = seeds.split_seed(tf.stack([agent._seed, agent.train_step_counter]), 1)
    noise = seeds.normal(seed, [NUM_SAMPLES, 4, 1]).numpy()
    reached = FRAMES.observation[:, 1].numpy()
    policy, _ = agent._target_actor_network(reached)
    actions = np.clip(policy.mean() + policy.stddev() * noise, -2, 2)
    mixtures = special.softmax(2 * (reached + actions) * ATOMS / 4, axis=-1).mean(0)
    losses, errors = [], []
    for i, (reward, discount) in enumerate([(1, 0.5), (-2, 0), (3, 0.5)]):
        o, a = FRAMES.observation[i, 0, 0].numpy(), FRAMES.action[i, 0, 0].numpy()
        log_probs = special.log_softmax((o + a) * ATOMS / 4)
        target = projected(reward + discount * ATOMS, mixtures[i])
        losses.append(-(target * log_probs).sum())
        errors.append(
            reward + discount * mixtures[i] @ ATOMS - np.exp(log_probs) @ ATOMS
        )
    extra = agent.loss(FRAMES).extra
    np.testing.assert_allclose(extra.td_loss, [*losses, 0], rtol=1e-5)
    np.testing.assert_allclose(extra.td_error, [*errors, 0], rtol=1e-4)
    np.testing.assert_allclose(extra.critic_loss, np.sum(losses) / 4, rtol=1e-5)


def test_actions_are_weighted_by_the_means_of_their_distributions():
    agent = make_agent()
    evaluation = agent._batch(FRAMES, None, False).details["evaluation"]
    values = agent._means(evaluation)
    sums = FRAMES.observation[:, 1] + np.clip(2 * evaluation.actions, -2, 2)
    probs = special.softmax(2 * sums * ATOMS / 4, axis=-1)
    np.testing.assert_allclose(values, probs @ ATOMS, rtol=1e-5, atol=1e-6)


def images(size, time):
    rng = np.random.default_rng(0)
    return trajectory.Trajectory(
        step_type=np.ones([size, time], np.int32),
        observation=rng.integers(0, 256, [size, time, 84, 84, 3]).astype(np.float32)
        / 255,
        action=rng.uniform(-1, 1, [size, time, 6]).astype(np.float32),
        policy_info=(),
        next_step_type=np.ones([size, time], np.int32),
        reward=np.ones([size, time], np.float32),
        discount=np.ones([size, time], np.float32),
    )


@pytest.mark.slow
def test_the_networks_of_acmes_documentation_share_a_resnet():
    """The listing of Acme's page, on images of 84 by 84 pixels."""
    num_dimensions = 6
    policy_layer_sizes = (256, 256, 256)
    stochastic_policy_network = networks.Sequential(
        [
            networks.LayerNormMLP(policy_layer_sizes, activate_final=True),
            networks.MultivariateNormalDiagHead(num_dimensions),
        ]
    )
    critic_layer_sizes = (512, 512, 256)
    distributional_critic_network = networks.Sequential(
        [
            networks.CriticMultiplexer(),
            networks.LayerNormMLP(critic_layer_sizes, activate_final=True),
            networks.DiscreteValuedHead(vmin=-150.0, vmax=150.0, num_atoms=51),
        ]
    )
    shared_resnet = vision.ResNetTorso()
    agent = DmpoAgent(
        ts.time_step_spec(tf.TensorSpec([84, 84, 3], tf.float32)),
        BoundedTensorSpec([num_dimensions], tf.float32, -1.0, 1.0),
        policy_network=stochastic_policy_network,
        critic_network=distributional_critic_network,
        observation_network=shared_resnet,
        policy_optimizer=keras.optimizers.Adam(1e-4),
        critic_optimizer=keras.optimizers.Adam(1e-4),
        dual_optimizer=keras.optimizers.Adam(1e-2),
        n_step_update=1,
    )
    agent.initialize()
    (torso,), ((_, target),) = agent._embedding.networks, agent._embedding.target_pairs
    before = [v.numpy() for v in torso.trainable_variables]
    assert np.isfinite(agent.train(images(2, 2)).loss)
    # The critic's loss trains the ResNet; its target waits for its turn.
    for variable, kept, old in zip(
        torso.trainable_variables, target.trainable_variables, before, strict=True
    ):
        np.testing.assert_array_equal(kept, old)
        assert np.any(variable != old), variable.path
    step = ts.restart(tf.zeros([1, 84, 84, 3]), batch_size=1)
    assert agent.policy.action(step).action.shape == (1, 6)


def test_wrong_arguments_are_named():
    with pytest.raises(ValueError, match="DiscreteValuedHead"):
        make_agent(
            critic_network=networks.CriticNetwork((OBSERVATION, ACTION)),
            target_critic_network=None,
        )
    with pytest.raises(ValueError, match="td_errors_loss_fn: expected None"):
        make_agent(td_errors_loss_fn=tf.math.squared_difference)
