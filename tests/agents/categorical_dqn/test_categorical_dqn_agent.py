"""C51's loss against the numbers of TF-Agents' tests, and against NumPy."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from tfrl import agents, networks
from tfrl.agents.categorical_dqn import categorical_dqn_agent
from tfrl.specs import tensor_spec
from tfrl.trajectories import policy_step, trajectory
from tfrl.trajectories import time_step as ts

OBSERVATION = tf.TensorSpec([2], tf.float32)
ACTION = tensor_spec.BoundedTensorSpec([], tf.int32, 0, 1)


class Dummy(networks.network.Network):
    """The network of TF-Agents' tests: of action 0 high returns are more likely."""

    num_atoms = 51

    def __init__(self, input_tensor_spec, name=None):
        super().__init__(input_tensor_spec, name=name)
        kernel = np.ones([2, 102])
        kernel[0, :51] = np.arange(51)
        self._layer = keras.layers.Dense(
            102,
            kernel_initializer=lambda shape, dtype: tf.constant(kernel, dtype),
            bias_initializer="ones",
        )

    def call(self, observation):
        return tf.reshape(self._layer(observation), [-1, 2, 51]), ()


def make(network=None, specs=OBSERVATION, **kwargs):
    agent = agents.CategoricalDqnAgent(
        ts.time_step_spec(specs),
        ACTION,
        network or Dummy(OBSERVATION),
        keras.optimizers.SGD(0.01),
        **kwargs,
    )
    agent.initialize()
    return agent


REWARDS, DISCOUNTS = tf.constant([10.0, 20.0]), tf.constant([0.9, 0.9])
ACTIONS = policy_step.PolicyStep(tf.constant([0, 1]))


def transition(first, second):
    return trajectory.Transition(
        ts.restart(first, batch_size=2),
        ACTIONS,
        ts.transition(second, REWARDS, DISCOUNTS),
    )


FIRST, SECOND, THIRD = (
    tf.constant(x, tf.float32)
    for x in ([[1, 2], [3, 4]], [[5, 6], [7, 8]], [[9, 10], [11, 12]])
)


@pytest.mark.filterwarnings("ignore:.*can grow without bound")
def test_loss_is_tf_agents():
    loss = make().loss(transition(FIRST, SECOND)).loss
    np.testing.assert_allclose(loss, 2.19525, atol=1e-4)


def test_loss_with_masked_actions_is_tf_agents():
    agent = make(
        specs=(OBSERVATION, tensor_spec.BoundedTensorSpec([2], tf.int32, 0, 1)),
        observation_and_action_constraint_splitter=lambda x: (x[0], x[1]),
    )
    # Of each next observation the action that is worse without a mask.
    first, second = tf.constant([[1, 0], [0, 1]]), tf.constant([[0, 1], [1, 0]])
    loss = agent.loss(transition((FIRST, first), (SECOND, second))).loss
    np.testing.assert_allclose(loss, 5.062895, atol=1e-4)


def test_loss_of_two_steps_is_tf_agents():
    steps = (
        ts.restart(FIRST, batch_size=2),
        ts.transition(SECOND, REWARDS, DISCOUNTS),
        ts.transition(THIRD, REWARDS, DISCOUNTS),
    )
    frames = [
        trajectory.from_transition(one, ACTIONS, two)
        for one, two in zip(steps, (*steps[1:], steps[-1]), strict=True)
    ]
    experience = tf.nest.map_structure(lambda *x: tf.stack(x, axis=1), *frames)
    loss = make(n_step_update=2).loss(experience).loss
    np.testing.assert_allclose(loss, 2.19525, atol=1e-4)


def softmax(logits):
    powers = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)


def with_logits(logits, num_atoms=5, **kwargs):
    """An agent whose network gives each example its observation's logits."""

    class Identity(networks.network.Network):
        def __init__(self, input_tensor_spec, name=None):
            super().__init__(input_tensor_spec, name=name)
            self._layer = keras.layers.Dense(1)

        @property
        def num_atoms(self):
            return num_atoms

        def call(self, observation):
            self._layer(observation[..., 0])
            return observation, ()

    spec = tf.TensorSpec(logits.shape[1:], tf.float32)
    return make(
        Identity(spec), spec, min_q_value=-2.0, max_q_value=2.0, gamma=0.5, **kwargs
    )


def test_loss_is_the_cross_entropy_with_the_projected_target():
    """A transition, a termination, a truncation and a boundary, atom by atom."""
    rng = np.random.default_rng(0)
    logits, next_logits = rng.normal(size=[2, 4, 2, 5]).astype("f4")
    rewards = np.array([0.3, -1.7, 5.0, 7.0], "f4")
    discounts = np.array([1.0, 0.0, 1.0, 1.0], "f4")
    chosen = np.array([0, 1, 1, 0], "i4")
    experience = trajectory.Transition(
        ts.TimeStep(tf.constant([0, 1, 1, 2]), tf.zeros(4), tf.ones(4), logits),
        policy_step.PolicyStep(tf.constant(chosen)),
        ts.TimeStep(
            tf.constant([1, 2, 2, 0]),
            tf.constant(rewards),
            tf.constant(discounts),
            tf.constant(next_logits),
        ),
    )
    atoms = np.linspace(-2, 2, 5)
    expected_loss, expected_kl = [], []
    for i in range(3):
        next_probabilities = softmax(next_logits[i])
        best = np.argmax(next_probabilities @ atoms)
        target = np.zeros(5)
        for atom, probability in zip(atoms, next_probabilities[best], strict=True):
            reached = np.clip(rewards[i] + 0.5 * discounts[i] * atom, -2, 2) + 2
            low = int(np.floor(reached))
            target[low] += probability * (low + 1 - reached)
            if reached > low:
                target[low + 1] += probability * (reached - low)
        log_p = np.log(softmax(logits[i, chosen[i]]))
        expected_loss.append(-target @ log_p)
        of_target = target[target > 0]
        expected_kl.append(-target @ log_p + of_target @ np.log(of_target))
    loss, extra = with_logits(logits).loss(experience)
    np.testing.assert_allclose(extra.td_loss, [*expected_loss, 0], rtol=1e-5)
    np.testing.assert_allclose(extra.td_error, [*expected_kl, 0], rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(loss, sum(expected_loss) / 4, rtol=1e-5)


def test_weights_count():
    # TF-Agents' loss ignores them.
    experience = transition(FIRST, SECOND)
    agent = make(gamma=0.9)
    of_each = agent.loss(experience).extra.td_loss
    loss = agent.loss(experience, weights=tf.constant([2.0, 0.5])).loss
    np.testing.assert_allclose(loss, (2 * of_each[0] + 0.5 * of_each[1]) / 2, rtol=1e-6)


def test_unlikely_atoms_count_as_the_least_probability():
    # Of action 1 all 51 atoms are as likely, which is less than the least.
    agent = make(gamma=0.9, min_probability=0.05)
    losses = agent.loss(transition(FIRST, SECOND)).extra.td_loss
    np.testing.assert_allclose(losses[1], -np.log(0.05), rtol=1e-5)


def test_with_double_q_the_online_network_chooses():
    shape = [1, 2, 5]
    # The online network prefers action 1, the target network action 0.
    online, target = np.zeros([2, *shape], "f4")
    online[0, 1, 4], target[0, 0, 4] = 9, 9
    agent = with_logits(online, double_q=True)
    judged = agent._at_best_actions(
        tf.constant(target), tf.constant(online), ts.restart(online, 1)
    )
    np.testing.assert_array_equal(judged, target[:, 1])
    calls = []
    apply = agent._apply_network

    def spy(network, time_step, training=False):
        calls.append(network)
        return apply(network, time_step, training)

    agent._apply_network = spy
    agent._compute_next_q_values(ts.restart(tf.constant(online), 1), ())
    assert calls == [agent._target_q_network, agent._q_network]


def test_policies_act_by_the_expected_values():
    logits = np.zeros([3, 2, 5], "f4")
    logits[0, 1, 4] = logits[1, 0, 4] = logits[2, 1, 3] = 5
    agent = with_logits(logits, epsilon_greedy=0.0, seed=0)
    for policy in (agent.policy, agent.collect_policy):
        action = policy.action(ts.restart(tf.constant(logits), 3)).action
        np.testing.assert_array_equal(action, [1, 0, 1])


def test_wrong_arguments():
    with pytest.raises(TypeError, match=r"property num_atoms, got a QNetwork"):
        make(networks.QNetwork(OBSERVATION, ACTION))
    other = networks.CategoricalQNetwork(OBSERVATION, ACTION, num_atoms=3)
    with pytest.raises(ValueError, match=r"different numbers of atoms.* 51 and 3"):
        make(target_categorical_q_network=other)
    with pytest.raises(
        ValueError, match="max_q_value: expected a finite number above 3"
    ):
        make(min_q_value=3.0, max_q_value=3.0)
    with pytest.raises(ValueError, match=r"min_probability: expected .* got 0.5"):
        make(min_probability=0.5)
    wrong = networks.QuantileQNetwork(OBSERVATION, ACTION, 4)
    wrong.num_atoms = 5
    with pytest.raises(ValueError, match=r"\(2, 4\).* expected.*\(2, 5\)|\(2, 5\)"):
        make(wrong)


def test_tf_agents_positions_of_the_arguments():
    agent = agents.CategoricalDqnAgent(
        ts.time_step_spec(OBSERVATION),
        ACTION,
        Dummy(OBSERVATION),
        keras.optimizers.SGD(0.01),
        None,
        -3.0,
        4.0,
        0.2,
        2,
        None,
        None,
        0.5,
        3,
        tf.math.squared_difference,
        0.7,
        2.0,
        1.0,
    )
    assert (agent._atoms[0], agent._atoms[-1], agent._gamma) == (-3, 4, 0.7)
    assert agent.train_sequence_length == 3


def test_distributions_are_projected_onto_the_agents_atoms():
    supports = [[0.0, 2.0, 4.0, 6.0, 8.0], [1.0, 3.0, 4.5, 5.0, 6.0]]
    weights = [[0.1, 0.6, 0.1, 0.1, 0.1], [0.1, 0.2, 0.5, 0.1, 0.1]]
    atoms = [4.0, 5.0, 6.0, 7.0, 8.0]
    projected = categorical_dqn_agent.project_distribution(
        supports, weights, atoms, validate_args=True
    )
    expected = [[0.8, 0.0, 0.1, 0.0, 0.1], [0.55, 0.35, 0.1, 0.0, 0.0]]
    np.testing.assert_allclose(projected, expected, rtol=1e-6, atol=1e-7)
    with pytest.raises(tf.errors.InvalidArgumentError, match="atoms that rise"):
        categorical_dqn_agent.project_distribution(
            supports, weights, atoms[::-1], validate_args=True
        )
    for wrong in ([weights[0]] * 3, atoms), (weights, atoms[:4]), (weights, [atoms]):
        with pytest.raises(ValueError, match=r"expected \[B, N\], \[B, N\] and \[N\]"):
            categorical_dqn_agent.project_distribution(supports, *wrong)
