"""CQL's penalty and updates, against NumPy; SAC's parts are tested with SAC."""

import functools

import keras
import numpy as np
import pytest
import tensorflow as tf

from tfrl import agents, networks
from tfrl.distributions import sampling
from tfrl.specs import tensor_spec
from tfrl.trajectories import time_step as ts
from tfrl.trajectories import trajectory
from tfrl.utils import variables
from tfrl.utils.random_numbers import seeds

MID, LAST = 1, 2
OBSERVATION = tf.TensorSpec([3], tf.float32)
# Two different ranges.
ACTION = tensor_spec.BoundedTensorSpec([2], tf.float32, [-2.0, 0.0], [2.0, 1.0])
MIDDLE, MAGNITUDE = np.array([0.0, 0.5]), np.array([2.0, 0.5])
RNG = np.random.default_rng(0)
NOISE, SHARE, TEMPERATURE, TAU, CQL_ALPHA = 0.5, 0.25, 2.0, 1.5, 3.0
ACTOR = {
    "kernel": RNG.normal(size=[3, 4]) * 0.5,
    "bias": np.array([0.3, -0.4, -0.5, -1.0]),
}
CRITICS = [
    {"kernel": RNG.normal(size=[5, 1]), "bias": RNG.normal(size=[1])} for _ in range(2)
]
# A transition and a boundary.
STEP_TYPES = np.array([[MID, MID], [LAST, 0]])
OBSERVATIONS = RNG.normal(size=[2, 2, 3])
# At the bounds.
ACTIONS = np.array([[-2.0, 1.0], [2.0, 0.0]])


def frames():
    def floats(x):
        return tf.constant(x, tf.float32)

    return trajectory.Trajectory(
        step_type=tf.constant(STEP_TYPES, tf.int32),
        observation=floats(OBSERVATIONS),
        action=floats(np.stack([ACTIONS] * 2, axis=1)),
        policy_info=(),
        next_step_type=tf.constant([[MID, MID], [0, MID]], tf.int32),
        reward=floats([[1, 1], [100, 100]]),
        discount=tf.ones([2, 2]),
    )


def make(**kwargs):
    specs = (OBSERVATION, ACTION)
    projection = functools.partial(
        agents.sac.TanhNormalProjectionNetwork,
        std_transform=agents.sac.std_clip_transform,
    )
    defaults = {
        "critic_network": networks.CriticNetwork(specs, seed=2),
        "actor_network": networks.ActorDistributionNetwork(
            *specs, fc_layer_params=None, continuous_projection_net=projection, seed=1
        ),
        "cql_alpha": CQL_ALPHA,
        "num_cql_samples": 1,
        "include_critic_entropy_term": True,
        "use_lagrange_cql_alpha": False,
        "cql_tau": TAU,
        "softmax_temperature": TEMPERATURE,
        "gamma": 0.9,
        "random_seed": 3,
    }
    for name in ("actor", "critic", "alpha"):
        defaults[f"{name}_optimizer"] = keras.optimizers.SGD(0.1)
    agent = agents.CqlSacAgent(
        ts.time_step_spec(OBSERVATION), ACTION, **{**defaults, **kwargs}
    )
    held = [agent._actor_network, *agent._critic_networks]
    for network, values in zip(held, [ACTOR, *CRITICS], strict=True):
        for variable, value in zip(network.variables, values.values(), strict=True):
            variables.as_tf_variable(variable).assign(value)
    agent.initialize()
    return agent


@pytest.fixture
def _fixed_noise(monkeypatch):
    def constant(number):
        return lambda seed, shape, dtype=tf.float32: tf.fill(
            shape, tf.constant(number, dtype)
        )

    monkeypatch.setattr(sampling.seeds, "normal", constant(NOISE))
    monkeypatch.setattr(seeds, "uniform", constant(SHARE))


fixed_noise = pytest.mark.usefixtures("_fixed_noise")


def q(weights, observation, action):
    inputs = np.concatenate([observation, action], axis=-1)
    return (inputs @ weights["kernel"] + weights["bias"])[:, 0]


def draw(observation):
    """Returns actions, and the log densities of actions scaled to [-1, 1]."""
    mean, log_std = np.split(observation @ ACTOR["kernel"] + ACTOR["bias"], 2, axis=-1)
    x = mean + np.exp(log_std) * NOISE
    log_prob = -(NOISE**2) / 2 - log_std - np.log(2 * np.pi) / 2
    log_prob += 2 * np.log(np.cosh(x))
    return MIDDLE + MAGNITUDE * np.tanh(x), log_prob.sum(axis=-1)


def penalty(critics=CRITICS):
    """The mean over the batch, in which the boundary counts as 0."""
    now = OBSERVATIONS[:1, 0]
    own, log_prob = draw(now)
    uniform = MIDDLE + MAGNITUDE * (2 * np.full([1, 2], SHARE) - 1)
    # The ranges are 4 and 1 wide.
    terms = [
        [(own, log_prob - np.log(2 * 0.5)), (uniform, -np.log(4 * 1))] for _ in critics
    ]
    each = [
        np.log(sum(np.exp(TEMPERATURE * q(w, now, a) - p) for a, p in pairs))
        / TEMPERATURE
        - q(w, now, ACTIONS[:1])
        for w, pairs in zip(critics, terms, strict=True)
    ]
    return np.mean(each) / 2


@fixed_noise
def test_the_penalty_of_a_transition_and_a_boundary():
    agent = make()
    extra = agent.loss(frames()).extra
    np.testing.assert_allclose(extra.cql_loss, penalty(), rtol=1e-5)
    np.testing.assert_allclose(extra.cql_alpha, CQL_ALPHA, rtol=1e-6)
    assert extra.cql_alpha_loss == 0
    total = extra.critic_loss + CQL_ALPHA * extra.cql_loss
    total += extra.actor_loss + extra.alpha_loss
    np.testing.assert_allclose(agent.loss(frames()).loss, total, rtol=1e-6)


@fixed_noise
def test_the_penalty_does_not_depend_on_the_number_of_equal_samples():
    """All noise is equal, so N samples of each kind add log N, divided by T."""
    many = make(num_cql_samples=3).loss(frames()).extra.cql_loss
    expected = penalty() + np.log(3) / TEMPERATURE / 2
    np.testing.assert_allclose(many, expected, rtol=1e-5)


@fixed_noise
def test_an_update_of_the_critics_by_the_penalty_alone():
    agent = make(bc_debug_mode=True)
    agent.train(frames())
    kernel, step = CRITICS[0]["kernel"], 1e-6
    for i in range(5):
        sides = []
        for sign in (1, -1):
            changed = kernel.copy()
            changed[i] += sign * step
            sides.append(penalty([{**CRITICS[0], "kernel": changed}, CRITICS[1]]))
        slope = CQL_ALPHA * (sides[0] - sides[1]) / 2 / step
        np.testing.assert_allclose(
            agent._critic_networks[0].variables[0][i],
            kernel[i] - 0.1 * slope,
            rtol=1e-3,
            atol=1e-5,
        )


@fixed_noise
@pytest.mark.parametrize("tau", [-10.0, pytest.param(10.0, marks=pytest.mark.slow)])
def test_the_multiplier_rises_while_the_penalty_is_above_the_threshold(tau):
    agent = make(use_lagrange_cql_alpha=True, cql_tau=tau, cql_alpha_learning_rate=0.1)
    extra = agent.train(frames()).extra
    np.testing.assert_allclose(extra.cql_alpha, CQL_ALPHA, rtol=1e-6)
    # The boundary's penalty and threshold both count as 0.
    expected = -CQL_ALPHA * (penalty() - tau / 2)
    np.testing.assert_allclose(extra.cql_alpha_loss, expected, rtol=1e-5)
    # The first step of Adam is the learning rate, towards lower losses.
    moved = CQL_ALPHA * np.exp(0.1 if tau < 0 else -0.1)
    np.testing.assert_allclose(agent.diagnose()["cql_alpha"], moved, rtol=1e-4)


def test_the_multiplier_stays_in_its_bounds():
    agent = make(
        use_lagrange_cql_alpha=True,
        cql_tau=-1e6,
        cql_alpha_learning_rate=1.0,
        log_cql_alpha_clipping=(0.0, 1.2),
    )
    agent.train(frames())
    np.testing.assert_allclose(agent.diagnose()["cql_alpha"], np.exp(1.2), rtol=1e-5)


@pytest.mark.slow
@fixed_noise
def test_the_actor_clones_at_first():
    """The action at the bounds is moved inside by a millionth, so all is finite."""
    agent = make(num_bc_steps=1)
    loss = agent.loss(frames()).extra.actor_loss
    mean, log_std = np.split(
        OBSERVATIONS[:1, 0] @ ACTOR["kernel"] + ACTOR["bias"], 2, axis=-1
    )
    x = np.arctanh(np.array([[-1, 1]]) * (1 - 2.0**-20))
    z = (x - mean) / np.exp(log_std)
    density = -(z**2) / 2 - log_std - np.log(2 * np.pi) / 2 + 2 * np.log(np.cosh(x))
    _, own = draw(OBSERVATIONS[:1, 0])
    expected = (own - (density - np.log(MAGNITUDE)).sum(axis=-1)) / 2
    np.testing.assert_allclose(loss, expected[0], rtol=0.02)
    agent.train(frames())
    assert np.isfinite(agent.loss(frames()).loss)
    critic_values = agent.loss(frames()).extra.actor_loss
    assert abs(critic_values - loss) > 10


@pytest.mark.slow
@fixed_noise
def test_targets_without_entropy_and_with_noise_in_the_rewards():
    """Noise of variance 4 is 2 * 0.5 here, and alpha is 1."""
    one, other = (
        make(include_critic_entropy_term=entropy).loss(frames()).extra.td_error[0]
        for entropy in (True, False)
    )
    _, log_prob = draw(OBSERVATIONS[:1, 1])
    np.testing.assert_allclose(other - one, 0.9 * log_prob[0], rtol=1e-4)
    noisy = make(reward_noise_variance=4.0).loss(frames()).extra.td_error
    np.testing.assert_allclose(noisy, [one + 1, 0], rtol=1e-4)


@pytest.mark.slow
def test_a_boundary_changes_no_critic_and_no_actor():
    agent = make(use_lagrange_cql_alpha=True, num_bc_steps=1)
    row = tf.nest.map_structure(lambda t: t[1:], frames())
    held = [agent._actor_network, *agent._critic_networks]
    before = [v.numpy() for n in held for v in n.variables]
    alpha = agent.diagnose()["cql_alpha"]
    for _ in range(2):
        agent.train(row)
    for one, other in zip(before, (v for n in held for v in n.variables), strict=True):
        np.testing.assert_array_equal(one, other)
    np.testing.assert_array_equal(agent.diagnose()["cql_alpha"], alpha)


@pytest.mark.slow
def test_equal_seeds_give_equal_updates():
    agents_of_one_seed = [make(num_cql_samples=2) for _ in range(2)]
    for agent in agents_of_one_seed:
        agent.train(frames())
    for one, other in zip(*(a.variables() for a in agents_of_one_seed), strict=True):
        np.testing.assert_array_equal(one, other)


# --- Sequences.

FIRST = 0
# An episode that goes on, one that ends at a boundary before the next, and padding.
SEQUENCES = np.array(
    [[FIRST, MID, MID, MID], [MID, LAST, FIRST, MID], [FIRST, MID, LAST, LAST]]
)
SEEN = RNG.normal(size=[3, 4, 3])
DONE = RNG.uniform([-1.9, 0.05], [1.9, 0.95], size=[3, 4, 2])


def sequences():
    return trajectory.Trajectory(
        step_type=tf.constant(SEQUENCES, tf.int32),
        observation=tf.constant(SEEN, tf.float32),
        action=tf.constant(DONE, tf.float32),
        policy_info=(),
        next_step_type=tf.constant(
            [[MID, MID, MID, MID], [LAST, FIRST, MID, MID], [MID, LAST, LAST, LAST]],
            tf.int32,
        ),
        reward=tf.ones([3, 4]),
        discount=tf.ones([3, 4]),
    )


def recurrent(kind=agents.CqlSacAgent, **kwargs):
    specs = (OBSERVATION, ACTION)
    agent = kind(
        ts.time_step_spec(OBSERVATION),
        ACTION,
        networks.CriticRnnNetwork(
            specs,
            observation_fc_layer_params=None,
            action_fc_layer_params=None,
            joint_fc_layer_params=(4,),
            lstm_size=(3,),
            output_fc_layer_params=None,
            seed=1,
        ),
        networks.ActorDistributionRnnNetwork(
            *specs,
            input_fc_layer_params=(4,),
            lstm_size=(3,),
            output_fc_layer_params=None,
            continuous_projection_net=agents.sac.TanhNormalProjectionNetwork,
            seed=1,
        ),
        *(keras.optimizers.SGD(0.1) for _ in range(3)),
        gamma=0.9,
        **kwargs,
    )
    agent.initialize()
    return agent


def recurrent_cql(**kwargs):
    return recurrent(
        cql_alpha=CQL_ALPHA,
        num_cql_samples=1,
        include_critic_entropy_term=True,
        use_lagrange_cql_alpha=True,
        cql_tau=TAU,
        softmax_temperature=TEMPERATURE,
        random_seed=3,
        **kwargs,
    )


def weights_of(network):
    return [np.float64(v.numpy()) for v in network.trainable_variables]


def unrolled(weights, inputs):
    """The outputs of a dense layer, an LSTM and a dense layer, `[3, 3, n]`."""
    kernel, bias, of_input, of_state, of_gates, last_kernel, last_bias = weights

    def sigmoid(x):
        return 1 / (1 + np.exp(-x))

    outputs = []
    h = c = np.zeros([3, 3])
    for t in range(3):
        starts = SEQUENCES[:, t] == FIRST
        if t:
            starts |= SEQUENCES[:, t - 1] == LAST
        h, c = (np.where(starts[:, np.newaxis], 0, x) for x in (h, c))
        hidden = np.maximum(inputs[:, t] @ kernel + bias, 0)
        gates = hidden @ of_input + h @ of_state + of_gates
        i, f, g, o = np.split(gates, 4, axis=-1)
        c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
        h = sigmoid(o) * np.tanh(c)
        outputs.append(h @ last_kernel + last_bias)
    return np.stack(outputs, axis=1)


def penalties_over_time(actor, critics):
    """The penalties of the steps, and whether they count, `[3, 3]` each."""
    mean, std = np.split(unrolled(actor, SEEN), 2, axis=-1)
    std = np.exp(std)
    x = mean + std * NOISE
    log_prob = -(NOISE**2) / 2 - np.log(std) - np.log(2 * np.pi) / 2
    log_prob += 2 * np.log(np.cosh(x)) - np.log(MAGNITUDE)
    own = MIDDLE + MAGNITUDE * np.tanh(x)
    uniform = MIDDLE + MAGNITUDE * (2 * np.full([3, 3, 2], SHARE) - 1)

    def q_over_time(critic, actions):
        return unrolled(critic, np.concatenate([SEEN[:, :3], actions], -1))[..., 0]

    each = [
        np.log(
            np.exp(TEMPERATURE * q_over_time(w, own) - log_prob.sum(-1))
            + np.exp(TEMPERATURE * q_over_time(w, uniform) + np.log(4 * 1))
        )
        / TEMPERATURE
        - q_over_time(w, DONE[:, :3])
        for w in critics
    ]
    return np.mean(each, axis=0), SEQUENCES[:, :3] != LAST


@pytest.mark.slow
@fixed_noise
def test_the_penalty_of_sequences_is_summed_over_their_steps():
    agent = recurrent_cql()
    extra = agent.loss(sequences()).extra
    actor, *critics = map(weights_of, [agent._actor_network, *agent._critic_networks])
    values, counts = penalties_over_time(actor, critics)
    np.testing.assert_allclose(
        extra.cql_loss, (values * counts).sum(1).mean(), rtol=1e-5
    )
    excess = ((values - TAU) * counts).sum(1).mean()
    np.testing.assert_allclose(extra.cql_alpha_loss, -CQL_ALPHA * excess, rtol=1e-4)


@pytest.mark.slow
@fixed_noise
def test_an_update_of_recurrent_critics_by_the_penalty_alone():
    agent = recurrent_cql(bc_debug_mode=True)
    actor, *critics = map(weights_of, [agent._actor_network, *agent._critic_networks])
    agent.train(sequences())

    def loss(i, move):
        moved = [w.copy() for w in critics[0]]
        moved[i].flat[1] += move
        values, counts = penalties_over_time(actor, [moved, critics[1]])
        return CQL_ALPHA * (values * counts).sum(1).mean()

    for i, new in enumerate(weights_of(agent._critic_networks[0])[:6]):
        slope = (loss(i, 1e-6) - loss(i, -1e-6)) / 2e-6
        np.testing.assert_allclose(
            new.flat[1], critics[0][i].flat[1] - 0.1 * slope, rtol=1e-3, atol=1e-5
        )


@pytest.mark.slow
@fixed_noise
def test_recurrent_networks_have_sacs_other_losses():
    extra = recurrent_cql().loss(sequences()).extra
    other = recurrent(agents.SacAgent, seed=3).loss(sequences()).extra
    for name in ("critic_loss", "actor_loss", "alpha_loss", "td_loss", "td_error"):
        np.testing.assert_allclose(
            getattr(extra, name), getattr(other, name), rtol=1e-5, err_msg=name
        )


@pytest.mark.slow
def test_recurrent_updates_of_several_samples_that_clone_at_first():
    agent = recurrent_cql(num_bc_steps=1)
    agent._num_samples = 4
    losses = [agent.train(sequences()).extra.actor_loss for _ in range(2)]
    assert np.all(np.isfinite(losses))
    boundary = sequences()._replace(step_type=tf.fill([3, 4], LAST))
    extra = agent.loss(boundary).extra
    assert (extra.cql_loss, extra.actor_loss, extra.critic_loss) == (0, 0, 0)


# --- Errors.


def test_the_public_critic_loss_leaves_out_the_penalty():
    agent = make(reward_noise_variance=4.0)
    squeezed = tf.nest.map_structure(
        lambda x: tf.squeeze(x, 1), trajectory.to_transition(frames())
    )
    loss = agent.critic_loss(
        squeezed.time_step, squeezed.action_step.action, squeezed.next_time_step
    )
    expected = agent.loss(frames()).extra.critic_loss
    np.testing.assert_allclose(0.5 * loss, expected, rtol=1e-6)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"num_cql_samples": 0}, "num_cql_samples"),
        ({"cql_alpha": -1.0}, "cql_alpha"),
        (
            {"use_lagrange_cql_alpha": True, "log_cql_alpha_clipping": (2.0, 3.0)},
            "log_cql_alpha_clipping",
        ),
    ],
)
def test_wrong_arguments_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        make(**arguments)
