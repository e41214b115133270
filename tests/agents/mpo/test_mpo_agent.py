"""MpoAgent: losses worked by NumPy, who trains what, and learning."""

import keras
import numpy as np
import pytest
import tensorflow as tf
import tensorflow_probability as tfp

from tfrl import agents, losses, networks
from tfrl.agents.mpo import normalized_actions
from tfrl.specs import BoundedTensorSpec
from tfrl.trajectories import policy_step, trajectory
from tfrl.trajectories import time_step as ts
from tfrl.utils import tensor_normalizer
from tfrl.utils.random_numbers import seeds

OBSERVATION = tf.TensorSpec([1], tf.float32)
ACTION = BoundedTensorSpec([1], tf.float32, -1.0, 3.0)
TIME_STEP = ts.time_step_spec(OBSERVATION)
NUM_SAMPLES = 4


class Policy(networks.Network):
    """Normal distributions of mean `k * o` and standard deviation `s`."""

    def __init__(self, k, s, name="Policy"):
        super().__init__(OBSERVATION, name=name)
        self._initial = k, s

    def build(self, input_shape=None):
        self._k, self._s = map(tf.Variable, self._initial)

    def call(self, observation, training=False):
        mean = self._k * observation
        stddev = self._s * tf.ones_like(mean)
        return tfp.distributions.MultivariateNormalDiag(mean, stddev), ()


def critic(of_observation, of_action):
    """A network with the value `of_observation * o + of_action * a`."""
    net = networks.CriticNetwork((OBSERVATION, ACTION))
    net.create_variables()
    net.variables[0].assign([[of_observation], [of_action]])
    return net


def make_agent(**kwargs):
    arguments = {
        "policy_network": Policy(0.5, 0.7),
        "target_policy_network": Policy(0.4, 0.8),
        "critic_network": critic(1.0, 2.0),
        "target_critic_network": critic(3.0, 1.0),
        "policy_optimizer": keras.optimizers.SGD(0.1),
        "critic_optimizer": keras.optimizers.SGD(0.1),
        "dual_optimizer": keras.optimizers.SGD(0.1),
        "num_samples": NUM_SAMPLES,
        "gamma": 0.9,
        "reward_scale_factor": 2.0,
        "n_step_update": 1,
        "seed": 3,
        **kwargs,
    }
    return agents.MpoAgent(TIME_STEP, ACTION, **arguments)


def transitions(boundary=7.0):
    """A transition, a termination, a truncation and a boundary."""
    column = lambda values: tf.constant(values, tf.float32)[:, tf.newaxis]  # noqa: E731
    zeros = tf.zeros([4])
    return trajectory.Transition(
        ts.TimeStep(
            tf.constant([0, 1, 1, 2]), zeros, zeros, column([1, 2, 1, boundary])
        ),
        policy_step.PolicyStep(column([0.5, -1, 1, boundary])),
        ts.TimeStep(
            tf.constant([1, 2, 2, 0]),
            tf.constant([1.0, 3.0, 0.0, boundary]),
            tf.constant([1.0, 0.0, 1.0, 1.0]),
            column([2, 4, -2, boundary]),
        ),
    )


REACHED = np.array([2.0, 4, -2, 7])[:, None]


def drawn(agent):
    """The actions that the agent's losses see, in units of the bounds, `[N, 4, 1]`."""
    (seed,) = seeds.split_seed(tf.stack([agent._seed, agent.train_step_counter]), 1)
    noise = seeds.normal(seed, [NUM_SAMPLES, 4, 1]).numpy()
    # The middle of the bounds is 1, and half of their distance is 2.
    return (0.4 * REACHED - 1) / 2 + 0.8 / 2 * noise


def values_of(actions):
    """The target critic's values of the actions inside of the bounds, `[N, 4]`."""
    return (3 * REACHED + 1 + 2 * np.clip(actions, -1, 1))[..., 0]


def targets_of(actions):
    following = values_of(actions).mean(axis=0)
    return np.array([2 + 0.9 * following[0], 6, 0.9 * following[2]])


def test_the_critics_target_is_the_mean_of_drawn_actions():
    """The loss has a half, as Acme's: the gradients are clipped at the same errors."""
    agent = make_agent()
    extra = agent.loss(transitions()).extra
    errors = targets_of(drawn(agent)) - [2, 0, 3]
    np.testing.assert_allclose(extra.td_error, [*errors, 0], rtol=1e-5)
    np.testing.assert_allclose(extra.td_loss, [*errors**2 / 2, 0], rtol=1e-5)
    np.testing.assert_allclose(extra.critic_loss, (errors**2).sum() / 8, rtol=1e-5)


def unit_normal(k, s):
    """A policy at the first three steps reached, in units of the bounds."""
    mean = np.float32((k * REACHED[:3] - 1) / 2)
    return tfp.distributions.Normal(mean, np.full([3, 1], s / 2, np.float32))


def test_the_policy_is_fitted_at_the_steps_reached():
    """To the loss of `losses.MPO` in units of the bounds, without the boundary."""
    agent = make_agent()
    loss, extra = agent.loss(transitions())
    actions = drawn(agent)[:, :3].astype(np.float32)
    expected, _ = losses.MPO(
        epsilon=0.1,
        epsilon_mean=1e-3,
        epsilon_stddev=1e-6,
        init_log_temperature=1.0,
        init_log_alpha_mean=1.0,
        init_log_alpha_stddev=10.0,
    )(
        unit_normal(0.5, 0.7),
        unit_normal(0.4, 0.8),
        actions,
        values_of(drawn(agent))[:, :3].astype(np.float32),
    )
    np.testing.assert_allclose(
        extra.actor_loss + extra.dual_loss, expected * 3 / 4, rtol=1e-5
    )
    np.testing.assert_allclose(
        loss, extra.actor_loss + extra.dual_loss + extra.critic_loss, rtol=1e-6
    )


def test_an_update_moves_each_part_by_its_own_loss():
    agent = make_agent(target_update_period=2)
    actions = drawn(agent)
    online, duals = agent._actor_network, agent.policy_loss_module.trainable_variables
    with tf.GradientTape() as tape:
        extra = agent.loss(transitions()).extra
        total = extra.actor_loss + extra.dual_loss
    slopes = tape.gradient(total, [*online.variables, *duals])
    before = [v.numpy() for v in [*online.variables, *duals]]
    agent.train(transitions())
    after = [v.numpy() for v in [*online.variables, *duals]]
    for old, slope, new in zip(before, slopes, after, strict=True):
        assert np.any(slope != 0)
        np.testing.assert_allclose(new, old - 0.1 * slope, rtol=1e-4, atol=1e-6)
    errors = targets_of(actions) - [2, 0, 3]
    inputs = np.array([[1, 0.5], [2, -1], [1, 1]])
    kernel = agent._critic_networks[0].variables[0][:, 0]
    expected = [1, 2] + 0.1 * (errors[:, None] * inputs).sum(0) / 4
    np.testing.assert_allclose(kernel, expected, rtol=1e-5)
    target = agent._target_critic_networks[0].variables[0]
    np.testing.assert_array_equal(target[:, 0], [3, 1])
    agent.train(transitions())
    np.testing.assert_array_equal(target, agent._critic_networks[0].variables[0])


def test_a_boundary_changes_no_weight():
    pair = [make_agent() for _ in range(2)]
    for agent, boundary in zip(pair, (7.0, -100.0), strict=True):
        agent.train(transitions(boundary))
    for one, other in zip(*(a.variables() for a in pair), strict=True):
        np.testing.assert_array_equal(one, other)


def test_gradients_are_clipped_together_but_not_those_of_duals():
    free, clipped = (
        make_agent(gradient_clipping=None),
        make_agent(gradient_clipping=0.5),
    )
    moves = []
    for agent in (free, clipped):
        parts = (agent._actor_network, agent._critic_networks[0])
        variables = [[tf.convert_to_tensor(v) for v in p.variables] for p in parts]
        dual = [v.numpy() for v in agent.policy_loss_module.trainable_variables]
        agent.train(transitions())
        moves.append(
            [
                np.concatenate(
                    [
                        np.ravel(np.subtract(new, old))
                        for new, old in zip(p.variables, v, strict=True)
                    ]
                )
                for p, v in zip(parts, variables, strict=True)
            ]
            + [
                np.subtract(
                    agent.policy_loss_module.trainable_variables[0].numpy(), dual[0]
                )
            ]
        )
    for long, short in zip(moves[0][:2], moves[1][:2], strict=True):
        assert np.linalg.norm(long) > 0.05
        np.testing.assert_allclose(np.linalg.norm(short), 0.05, rtol=1e-4)
        np.testing.assert_allclose(
            short / np.linalg.norm(short), long / np.linalg.norm(long), rtol=1e-4
        )
    np.testing.assert_allclose(moves[0][2], moves[1][2], rtol=1e-5)


def test_duals_stay_above_their_least_logarithm():
    agent = make_agent(dual_optimizer=keras.optimizers.SGD(1e6))
    train_step = tf.function(agent.train, autograph=False)
    for _ in range(2):
        train_step(transitions())
    logs = np.concatenate([v for v in agent.policy_loss_module.trainable_variables])
    assert logs.min() == -18
    assert train_step.experimental_get_tracing_count() == 1


def test_policies():
    agent = make_agent()
    step = ts.restart(tf.ones([4000, 1]), batch_size=4000)
    np.testing.assert_allclose(
        agent.policy.action(step).action[:2], [[0.5], [0.5]], rtol=1e-6
    )
    actions = agent.collect_policy.action(step, seed=1).action.numpy()
    # The online policy's samples, clipped to their bounds -1 and 3.
    assert actions.min() == -1
    np.testing.assert_allclose(actions.std(), 0.7, rtol=0.05)
    np.testing.assert_allclose(actions.mean(), 0.5, atol=0.05)


def test_units_of_nested_actions():
    spec = {
        "a": BoundedTensorSpec([], tf.float32, 0.0, 4.0),
        "b": BoundedTensorSpec([2], tf.float32, [-1.0, 2.0], [1.0, 3.0]),
    }
    units = normalized_actions.NormalizedActions(spec)
    normal = units.normal(
        {
            "a": tfp.distributions.Normal([1.0], [2.0]),
            "b": tfp.distributions.MultivariateNormalDiag([[0.5, 2.5]], [[1.0, 1.0]]),
        }
    )
    np.testing.assert_array_equal(normal.mean(), [[-0.5, 0.5, 0.0]])
    np.testing.assert_array_equal(normal.stddev(), [[1.0, 1.0, 2.0]])
    actions = units.clipped_actions(tf.constant([[-0.5, 0.5, 0.0], [2.0, -3.0, 1.0]]))
    np.testing.assert_array_equal(actions["a"], [1.0, 4.0])
    np.testing.assert_array_equal(actions["b"], [[0.5, 2.5], [-1.0, 3.0]])


def test_numbers_for_a_log():
    agent = make_agent(
        observation_normalizer=tensor_normalizer.StreamingTensorNormalizer(OBSERVATION)
    )
    before = [v.numpy() for v in agent.variables()]
    values = agent.diagnose(transitions())
    assert values["dual_learning_rate"] == values["learning_rate"] == np.float32(0.1)
    np.testing.assert_allclose(values["dual_temperature"], np.log1p(np.e), rtol=1e-6)
    assert {"kl_q_rel", "q_value", "td_error", "pi_stddev_min"} <= set(values)
    for variable, old in zip(agent.variables(), before, strict=True):
        np.testing.assert_array_equal(variable, old)


def test_wrong_arguments_are_named():
    squashed = networks.ActorDistributionNetwork(
        OBSERVATION,
        ACTION,
        continuous_projection_net=agents.sac.TanhNormalProjectionNetwork,
    )
    with pytest.raises(TypeError, match="MPO expects normal distributions"):
        make_agent(policy_network=squashed, target_policy_network=None)
    with pytest.raises(ValueError, match="MPO expects distributions"):
        make_agent(policy_network=keras.layers.Dense(1), target_policy_network=None)
    with pytest.raises(NotImplementedError, match="MPO expects one without a state"):
        make_agent(
            policy_network=networks.ActorDistributionRnnNetwork(
                OBSERVATION, ACTION, lstm_size=(2,)
            ),
            target_policy_network=None,
        )
    with pytest.raises(TypeError, match=r"expected a losses\.MPO"):
        make_agent(policy_loss_module=losses.mpo_weights)
    with pytest.raises(ValueError, match="num_samples"):
        make_agent(num_samples=0)


def test_a_policy_climbs_to_the_best_action():
    """The reward of a one-step episode is -(a - 1)^2 / 4."""
    spec = BoundedTensorSpec([1], tf.float32, -2.0, 2.0)
    rng = np.random.default_rng(0)
    actions = rng.uniform(-2, 2, size=[256, 1]).astype(np.float32)
    ones = np.ones([256], np.int32)
    experience = trajectory.Transition(
        ts.TimeStep(
            0 * ones, np.zeros(256, "f"), np.ones(256, "f"), np.ones([256, 1], "f")
        ),
        policy_step.PolicyStep(actions),
        ts.TimeStep(
            2 * ones,
            -np.square(actions[:, 0] - 1) / 4,
            np.zeros(256, "f"),
            np.ones([256, 1], "f"),
        ),
    )
    agent = agents.MpoAgent(
        TIME_STEP,
        spec,
        Policy(-1.0, 1.0),
        networks.CriticNetwork(
            (OBSERVATION, spec), joint_fc_layer_params=(32, 32), seed=1
        ),
        keras.optimizers.Adam(1e-2),
        keras.optimizers.Adam(1e-2),
        keras.optimizers.Adam(1e-2),
        policy_loss_module=losses.MPO(0.1, 0.1, 1e-3, 1.0, 1.0, 1.0),
        n_step_update=1,
        target_update_period=10,
        seed=0,
    )
    agent.initialize()

    train_step = tf.function(agent.train, autograph=False)
    for _ in range(400):
        train_step(experience)
    step = ts.restart(tf.ones([1, 1]), batch_size=1)
    np.testing.assert_allclose(agent.policy.action(step).action, [[1.0]], atol=0.1)
