"""What a subclass of DqnAgent may override, and what is refused.

The methods are those that TF-Agents' own subclasses override, with their arguments, and
the seam for other losses.
"""

import keras
import numpy as np
import pytest
import tensorflow as tf

from tfrl import losses
from tfrl.agents import tf_agent
from tfrl.agents.dqn import dqn_agent
from tfrl.networks import QRnnNetwork, sequential
from tfrl.policies import epsilon_greedy_policy, greedy_policy, q_policy
from tfrl.specs import tensor_spec
from tfrl.trajectories import time_step as ts
from tfrl.trajectories import trajectory
from tfrl.utils import common

FIRST, MID, LAST = 0, 1, 2
OBSERVATION = tf.TensorSpec([2], tf.float32)
ACTION = tensor_spec.BoundedTensorSpec([], tf.int32, 0, 1)
INFO = {"extra": tf.TensorSpec([], tf.float32)}


def network(seed=1, outputs=2, shape=None):
    layers = [
        keras.layers.Dense(
            outputs, kernel_initializer=keras.initializers.GlorotUniform(seed)
        )
    ]
    if shape is not None:
        layers.append(keras.layers.Reshape(shape))
    return sequential.Sequential(layers, input_spec=OBSERVATION)


def recurrent_network(seed=1):
    return QRnnNetwork(
        OBSERVATION, ACTION, lstm_size=(3,), input_fc_layer_params=(4,), seed=seed
    )


def make(kind=dqn_agent.DqnAgent, q_network=None, **kwargs):
    kwargs.setdefault("gamma", 0.8)
    return kind(
        ts.time_step_spec(OBSERVATION),
        ACTION,
        q_network or network(),
        kwargs.pop("optimizer", None) or keras.optimizers.SGD(0.1),
        **kwargs,
    )


def frames(num_frames=2, policy_info=(), seed=0):
    rng = np.random.default_rng(seed)
    shape = [3, num_frames]
    result = trajectory.Trajectory(
        step_type=np.full(shape, MID, np.int32),
        observation=rng.normal(size=[*shape, 2]).astype(np.float32),
        action=rng.integers(2, size=shape).astype(np.int32),
        policy_info=policy_info,
        next_step_type=np.full(shape, MID, np.int32),
        reward=rng.normal(size=shape).astype(np.float32),
        discount=np.full(shape, 0.9, np.float32),
    )
    return tf.nest.map_structure(tf.constant, result)


def weights_of(agent):
    return [v.numpy() for v in agent.variables()]


# --- The next value.


class Sevens(dqn_agent.DqnAgent):
    """Values every next state as 7."""

    def _compute_next_q_values(self, next_time_steps, info):
        self.seen = next_time_steps, info
        return 7.0 * tf.ones_like(next_time_steps.reward)


def test_the_next_value_is_that_of_the_hook():
    agent, experience = make(Sevens), frames()
    values, _ = agent._q_network(experience.observation[:, 0])
    error = (
        experience.reward[:, 0]
        + 0.8 * 0.9 * 7
        - losses.action_value(values, experience.action[:, 0])
    )
    np.testing.assert_allclose(agent.loss(experience).extra.td_error, error, rtol=1e-5)


def test_the_hook_sees_the_next_time_step_and_the_info_of_the_action():
    info = {"extra": tf.constant([[1.0, 2.0]] * 3)}
    spec = make().collect_data_spec._replace(policy_info=INFO)
    agent = make(Sevens, training_data_spec=spec)
    experience = frames(policy_info=info)
    agent.loss(experience, gamma=0.5, reward_scale_factor=3.0)
    next_time_step, info = agent.seen
    np.testing.assert_array_equal(
        next_time_step.observation, experience.observation[:, 1]
    )
    np.testing.assert_array_equal(next_time_step.reward, experience.reward[:, 0])
    np.testing.assert_array_equal(info["extra"], [1, 1, 1])


def test_a_recurrent_network_has_the_same_hook():
    agent, experience = make(Sevens, recurrent_network()), frames(4)
    values, _ = agent._q_network(experience.observation[:, :3])
    error = (
        experience.reward[:, :3]
        + 0.8 * 0.9 * 7
        - losses.action_value(values, experience.action[:, :3])
    )
    np.testing.assert_allclose(agent.loss(experience).extra.td_error, error, rtol=1e-4)
    # All steps, so that the network can remember the first ones.
    assert agent.seen[0].reward.shape == [3, 4]


class TFAgentsDdqn(dqn_agent.DqnAgent):
    """Double DQN as a subclass of TF-Agents' would write it."""

    def _compute_next_q_values(self, next_time_steps, info):
        values, _ = self._target_q_network(
            next_time_steps.observation, step_type=next_time_steps.step_type
        )
        state = self._policy.get_initial_state(batch_size=3)
        action = self._policy.action(next_time_steps, state).action
        return common.index_with_actions(values, action)


def test_double_dqn_in_tf_agents_terms_is_ours():
    arguments = {"target_q_network": network(5), "q_network": network(2)}
    ours = make(dqn_agent.DdqnAgent, **arguments).loss(frames())
    theirs = make(TFAgentsDdqn, q_network=network(2), target_q_network=network(5)).loss(
        frames()
    )
    plain = make(q_network=network(2), target_q_network=network(5)).loss(frames())
    np.testing.assert_array_equal(ours.extra.td_error, theirs.extra.td_error)
    assert not np.array_equal(ours.extra.td_error, plain.extra.td_error)


# --- The loss.


def test_loss_takes_tf_agents_arguments_in_their_order():
    agent, experience = make(), frames()
    given = agent._loss(
        experience,
        common.element_wise_squared_loss,
        0.5,
        2.0,
        tf.constant([1.0, 0.0, 2.0]),
        False,
    )
    other = make(
        td_errors_loss_fn=common.element_wise_squared_loss,
        gamma=0.5,
        reward_scale_factor=2.0,
    )
    expected = other.loss(experience, weights=tf.constant([1.0, 0.0, 2.0]))
    np.testing.assert_array_equal(given.loss, expected.loss)
    # Unlike in TF-Agents, what one call is given does not stay.
    np.testing.assert_array_equal(
        agent.loss(experience).loss, make().loss(experience).loss
    )


def test_none_means_the_agents_own():
    agent = make(gamma=0.5, reward_scale_factor=2.0)
    ours = agent.loss(frames(), td_errors_loss_fn=None, gamma=None)
    explicit = agent.loss(
        frames(),
        td_errors_loss_fn=common.element_wise_huber_loss,
        gamma=0.5,
        reward_scale_factor=2.0,
    )
    np.testing.assert_array_equal(ours.loss, explicit.loss)


class OwnLoss(dqn_agent.DqnAgent):
    """Has a loss of its own with TF-Agents' defaults, as its categorical agent."""

    def _loss(
        self,
        experience,
        td_errors_loss_fn=None,
        gamma=1.0,
        reward_scale_factor=1.0,
        weights=None,
        training=False,
    ):
        self.seen = gamma, reward_scale_factor, td_errors_loss_fn, training
        return super()._loss(
            experience, td_errors_loss_fn, gamma, reward_scale_factor, weights, training
        )


def test_train_gives_a_loss_of_ones_own_all_numbers_of_the_agent():
    agent = make(OwnLoss, gamma=0.5, reward_scale_factor=2.0)
    agent.train(frames())
    assert agent.seen == (0.5, 2.0, common.element_wise_huber_loss, True)
    other = make(gamma=0.5, reward_scale_factor=2.0)
    other.train(frames())
    for one, two in zip(weights_of(agent), weights_of(other), strict=True):
        np.testing.assert_array_equal(one, two)


# --- The seam for other losses.


class SameLoss(dqn_agent.DqnAgent):
    """DQN, written with the helpers that an override of the seam has."""

    def _td_error(self, predictions, transitions):
        values = self._apply_network(self._target_q_network, transitions.next_time_step)
        best = tf.reduce_max(transitions.at_next(values), axis=-1)
        targets = tf.stop_gradient(transitions.reward + transitions.discount * best)
        return transitions.loss_fn(targets, predictions), targets - predictions


@pytest.mark.cpu
@pytest.mark.parametrize("make_network", [network, recurrent_network])
def test_the_seam_has_all_that_a_loss_needs(make_network):
    experience = frames(5 if make_network is recurrent_network else 2)
    agents = [
        make(kind, make_network(1), target_q_network=make_network(2), gamma=0.5)
        for kind in (dqn_agent.DqnAgent, SameLoss)
    ]
    infos = [a.train(experience, weights=tf.constant([1.0, 0, 2])) for a in agents]
    np.testing.assert_array_equal(infos[0].extra.td_loss, infos[1].extra.td_loss)
    np.testing.assert_array_equal(infos[0].extra.td_error, infos[1].extra.td_error)
    for one, two in zip(*map(weights_of, agents), strict=True):
        np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize("kind", [dqn_agent.DqnAgent, SameLoss])
def test_an_override_need_not_mask(kind):
    now, action_step, then = trajectory.to_transition(frames())
    now, action_step, then = tf.nest.map_structure(
        lambda t: t[:, 0], (now, action_step, then)
    )
    experience = trajectory.Transition(
        now._replace(step_type=tf.constant([MID, LAST, MID])),
        action_step,
        then._replace(
            reward=tf.constant([1.0, np.nan, 1.0]),
            discount=tf.constant([1.0, np.inf, 1.0]),
        ),
    )
    agent = make(kind)
    info = agent.train(experience)
    assert (info.extra.td_loss[1], info.extra.td_error[1]) == (0, 0)
    assert all(np.isfinite(v).all() for v in weights_of(agent))


def test_a_masked_transition_may_lead_to_anything():
    now, action_step, then = tf.nest.map_structure(
        lambda t: t[:, 0], trajectory.to_transition(frames())
    )
    agent = make()
    agent.train(
        trajectory.Transition(
            now._replace(step_type=tf.constant([MID, LAST, MID])),
            action_step,
            then._replace(observation=tf.constant([[1.0, 1], [np.nan, 1], [1, 1]])),
        )
    )
    assert all(np.isfinite(v).all() for v in weights_of(agent))


class Unreduced(dqn_agent.DqnAgent):
    def _td_error(self, predictions, transitions):
        errors = transitions.reward[:, None] - tf.stack([predictions] * 5, axis=1)
        return errors**2, tf.reduce_mean(errors, axis=1)


class OneResult(dqn_agent.DqnAgent):
    def _td_error(self, predictions, transitions):
        return super()._td_error(predictions, transitions)[0]


class BareLoss(dqn_agent.DqnAgent):
    def _loss(self, *args, **kwargs):
        return super()._loss(*args, **kwargs).loss


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (OneResult, r"OneResult\._td_error: expected the loss and the error of each"),
        (
            BareLoss,
            r"BareLoss\._loss: expected a LossInfo, got SymbolicTensor; return ",
        ),
    ],
)
def test_a_hook_that_returns_one_thing_of_two_is_named(kind, text):
    agent = make(kind)
    with pytest.raises(TypeError, match=f"^{text}"):
        tf.function(agent.train, autograph=False)(frames())


def test_a_loss_for_more_than_each_transition_is_an_error():
    with pytest.raises(
        ValueError,
        match=r"Unreduced._td_error: expected a loss .* shape \(3,\), got a loss of "
        r"shape \(3, 5\); add up",
    ):
        make(Unreduced).loss(frames())


# --- Networks that give several numbers per action.


class Spread(dqn_agent.DqnAgent):
    """Two numbers an action, whose weighted sum is its value."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.weights = tf.constant([1.0, -0.5])

    def _values_of(self, network_output):
        return tf.reduce_sum(network_output * self.weights, axis=-1)

    def _td_error(self, predictions, transitions):
        following = transitions.at_next(
            self._compute_next_q_values(transitions.next_time_step, transitions.info)
        )
        targets = transitions.discount[..., None] * following
        targets += transitions.reward[..., None]
        errors = tf.stop_gradient(targets) - predictions
        return tf.reduce_sum(errors**2, axis=-1), tf.reduce_mean(errors, axis=-1)


class DoubleSpread(Spread, dqn_agent.DdqnAgent):
    pass


def outputs_of(agent, observation):
    """What the network and its target give, and the values of both."""
    both = [
        network(observation)[0].numpy()
        for network in (agent._q_network, agent._target_q_network)
    ]
    return [*both, *(output @ [1.0, -0.5] for output in both)]


@pytest.mark.parametrize("kind", [Spread, DoubleSpread])
def test_the_values_of_the_output_choose_the_actions(kind):
    agent = make(
        kind,
        network(1, outputs=4, shape=[2, 2]),
        target_q_network=network(9, outputs=4, shape=[2, 2]),
    )
    experience = frames()
    then = experience.observation[:, 1]
    _, target, online_values, target_values = outputs_of(agent, then)
    step = ts.restart(then, batch_size=3)
    expected = np.argmax(online_values, axis=-1)
    np.testing.assert_array_equal(agent.policy.action(step).action, expected)
    best = np.argmax(online_values if kind is DoubleSpread else target_values, axis=-1)
    rows = np.arange(3)
    targets = experience.reward[:, :1] + 0.8 * 0.9 * target[rows, best]
    now, _, now_values, _ = outputs_of(agent, experience.observation[:, 0])
    taken = rows, experience.action[:, 0].numpy()
    errors = targets - now[taken]
    extra = agent.loss(experience).extra
    np.testing.assert_allclose(extra.td_loss, np.sum(errors**2, axis=1), rtol=1e-5)
    np.testing.assert_allclose(extra.td_error, np.mean(errors, axis=1), rtol=1e-5)
    numbers = agent.diagnose(experience)
    mean = np.mean(now_values[taken])
    np.testing.assert_allclose(numbers["q_value"], mean, rtol=1e-5)


def test_the_values_of_the_output_are_masked():
    spec = (OBSERVATION, tf.TensorSpec([2], tf.bool))
    agent = Spread(
        ts.time_step_spec(spec),
        ACTION,
        network(1, outputs=4, shape=[2, 2]),
        keras.optimizers.SGD(0.1),
        observation_and_action_constraint_splitter=lambda observation: observation,
    )
    observation = frames().observation[:, 0]
    _, target, _, _ = outputs_of(agent, observation)
    mask = tf.constant([[True, False], [False, True], [False, True]])
    step = ts.restart((observation, mask), batch_size=3)
    np.testing.assert_array_equal(agent.policy.action(step).action, [0, 1, 1])
    np.testing.assert_array_equal(
        agent._compute_next_q_values(step, ()), target[np.arange(3), [0, 1, 1]]
    )


def test_a_recurrent_network_may_give_several_numbers_per_action():
    recurrent = sequential.Sequential(
        [
            keras.layers.LSTM(4, return_sequences=True, return_state=True),
            keras.layers.Dense(4),
            lambda x: tf.stack([x[..., :2], x[..., 2:]], axis=-2),
        ],
        input_spec=OBSERVATION,
        seed=0,
    )
    agent, experience = make(Spread, recurrent), frames(4)
    assert np.isfinite(agent.train(experience).loss)
    assert agent.loss(experience).extra.td_error.shape == [3, 3]
    assert np.isfinite(agent.diagnose(experience)["q_value"])


def test_without_values_of_the_output_the_log_has_none():
    agent = make(Distributional, network(outputs=4, shape=[2, 2]))
    assert agent.diagnose(frames()).keys() == {
        "learning_rate",
        "epsilon",
        "td_error",
        "gradient_norm",
        "observation_size",
        "reward_size",
    }


def test_several_numbers_per_action_need_their_values():
    with pytest.raises(ValueError, match=r"q_network .* inner dims \(2,\)"):
        make(q_network=network(outputs=4, shape=[2, 2]))
    with pytest.raises(ValueError, match=r"q_network .* inner dims \(2, 2\)"):
        make(Spread, network(outputs=6, shape=[3, 2]))


# --- What is made at construction.


class Distributional(dqn_agent.DqnAgent):
    """Two numbers for each action; their mean acts."""

    def _check_network_output(self, net, label):
        self.checked = [*getattr(self, "checked", []), label]

    def _setup_policy(
        self, time_step_spec, action_spec, boltzmann_temperature, emit_log_probability
    ):
        class Mean(q_policy.QPolicy):
            def _values_of(self, network_output):
                return tf.reduce_mean(network_output, axis=-1)

        policy = Mean(
            time_step_spec,
            action_spec,
            self._q_network,
            emit_log_probability,
            self._observation_and_action_constraint_splitter,
            validate_action_spec_and_network=False,
        )
        self.arguments = boltzmann_temperature, emit_log_probability
        return (
            greedy_policy.GreedyPolicy(policy),
            epsilon_greedy_policy.EpsilonGreedyPolicy(policy, self._epsilon_greedy),
        )

    def _td_error(self, predictions, transitions):
        errors = transitions.reward[:, None] - predictions
        return tf.reduce_sum(errors**2, axis=1), tf.reduce_mean(errors, axis=1)


def test_policies_and_network_may_be_other_ones():
    agent = make(
        Distributional,
        network(outputs=4, shape=[2, 2]),
        epsilon_greedy=0.25,
        emit_log_probability=False,
    )
    assert agent.checked == ["q_network", "target_q_network"]
    assert agent.arguments == (None, False)
    assert agent.collect_policy._epsilon == 0.25
    experience = frames()
    output, _ = agent._q_network(experience.observation[:, 0])
    expected = np.argmax(np.mean(output, axis=-1), axis=-1)
    step = ts.restart(experience.observation[:, 0], batch_size=3)
    np.testing.assert_array_equal(agent.policy.action(step).action, expected)
    taken = output.numpy()[np.arange(3), experience.action[:, 0]]
    errors = experience.reward[:, :1] - taken
    np.testing.assert_allclose(
        agent.loss(experience).extra.td_loss, np.sum(errors**2, axis=1), rtol=1e-5
    )


class Halved(dqn_agent.DqnAgent):
    def _compute_q_values(self, time_steps, actions, training=False):
        return super()._compute_q_values(time_steps, actions, training) / 2


def test_the_values_of_actions_are_those_of_the_hook():
    zero = frames()._replace(reward=tf.zeros([3, 2]), discount=tf.zeros([3, 2]))
    kinds = dqn_agent.DqnAgent, Halved
    errors = [make(kind).loss(zero).extra.td_error for kind in kinds]
    np.testing.assert_array_equal(errors[1], errors[0] / 2)


class OtherUpdates(dqn_agent.DqnAgent):
    def _check_action_spec(self, action_spec):
        super()._check_action_spec(action_spec)
        self.counted = self._num_actions

    def _get_target_updater(self, tau=1.0, period=1):
        self.updates = tf.Variable(0)
        self.arguments = tau, period
        return lambda: self.updates.assign_add(1)

    def _initialize(self):
        super()._initialize()
        self.updates.assign(10)


def test_the_target_may_be_updated_in_another_way():
    agent = make(OtherUpdates, target_update_tau=0.5, target_update_period=3)
    assert (agent.counted, agent.arguments) == (2, (0.5, 3))
    agent.initialize()
    before = agent._target_q_network.variables[0].numpy()
    for _ in range(4):
        agent.train(frames())
    assert agent.updates == 14
    np.testing.assert_array_equal(agent._target_q_network.variables[0], before)
    # The weights of both networks and the counter.
    assert len(agent.variables()) > 2 * len(agent._q_network.variables)


# --- What is refused.


@pytest.mark.parametrize("base", [dqn_agent.DqnAgent, dqn_agent.DdqnAgent])
@pytest.mark.parametrize(
    ("name", "instead"),
    [
        ("_td_loss", r"_td_error\(predictions, transitions\)"),
        ("_apply_loss", r"self\._apply"),
    ],
)
def test_a_method_that_would_be_ignored_is_refused(base, name, instead):
    with pytest.raises(
        TypeError, match=rf"Mine\.{name}: got an override that .*{instead}"
    ):
        type("Mine", (base,), {name: lambda self, *args: None})


def test_hooks_get_tensors_of_the_experience_in_a_traced_function():
    agent = make(Sevens)
    loss = tf.function(agent.train)(frames())
    assert isinstance(loss, tf_agent.LossInfo)
    assert np.isfinite(loss.loss)
