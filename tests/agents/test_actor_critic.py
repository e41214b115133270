"""What the actor-critic agents share, with a small agent."""

from typing import Any, NamedTuple

import keras
import numpy as np
import pytest
import tensorflow as tf

from tfrl import agents
from tfrl.agents import (
    actor_critic,
    actor_critic_networks,
    checks,
    critics,
    observation_embedding,
    options,
    target_networks,
    transitions,
    updates,
)
from tfrl.networks import (
    ActorNetwork,
    ActorRnnNetwork,
    CriticEnsembleNetwork,
    CriticNetwork,
    CriticRnnNetwork,
)
from tfrl.policies import ActorPolicy
from tfrl.specs import BoundedTensorSpec
from tfrl.trajectories import time_step as ts
from tfrl.trajectories import trajectory
from tfrl.utils.random_numbers import seeds

OBSERVATION = tf.TensorSpec([1], tf.float32)
ACTION = BoundedTensorSpec([1], tf.float32, -2, 2)
TIME_STEP = ts.time_step_spec(OBSERVATION)
FIRST, MID, LAST = 0, 1, 2


def critic(**kwargs):
    return CriticNetwork((OBSERVATION, ACTION), joint_fc_layer_params=(3,), **kwargs)


class Extra(NamedTuple):
    critic_loss: Any
    td_loss: Any
    td_error: Any


class OneCriticAgent(actor_critic.ActorCriticAgent):
    """Fits critics to rewards plus the targets' values of the actor's actions."""

    _info = Extra

    def __init__(self, actor=None, networks=None, seed=0, optimizer=None, **kwargs):
        actor = actor or ActorNetwork(OBSERVATION, ACTION, (3,), seed=1)
        networks = networks or [critic(seed=2)]
        policy = ActorPolicy(TIME_STEP, ACTION, actor)
        specs = (OBSERVATION, ACTION)
        pairs = [
            target_networks.with_target(c, None, f"Target{i}", specs)
            for i, c in enumerate(networks)
        ]
        td = {
            "td_errors_loss_fn": tf.math.squared_difference,
            "gamma": 0.5,
            "reward_scale_factor": 10.0,
            **kwargs,
        }
        super().__init__(
            TIME_STEP,
            ACTION,
            policy,
            policy,
            actor_critic_networks.Networks(
                observation_embedding.ObservationEmbedding(None, OBSERVATION),
                actor,
                None,
                pairs,
            ),
            options.TdOptions(**td),
            options.AgentOptions(seed=seed),
        )
        optimizer = optimizer or keras.optimizers.SGD(0.1)
        self._parts = [self._critic_part(self._critic_loss, optimizer)]

    def _critic_loss(self, batch):
        reached = batch.data.next_time_step
        action = critics.outputs(self._actor_network, reached)
        values = critics.values(self._target_critic_networks[0], reached, action)
        return self._regress(batch, batch.data.targets(values))


def test_a_loss_without_its_details_is_named():
    class Bare(OneCriticAgent):
        def _critic_loss(self, batch):
            return super()._critic_loss(batch)[0]

    agent = Bare()
    for use in (agent.train, agent.loss, agent.diagnose):
        with pytest.raises(TypeError, match=r"Bare\._critic_loss: expected a scalar"):
            tf.function(use, autograph=False)(EXPERIENCE)


def frames(step_type, next_step_type, reward, discount):
    step_type = np.asarray(step_type, np.int32)
    observation = np.arange(step_type.size, dtype=np.float32)
    return trajectory.Trajectory(
        step_type=tf.constant(step_type),
        observation=tf.constant(observation.reshape(*step_type.shape, 1)),
        action=tf.fill([*step_type.shape, 1], 0.5),
        policy_info=(),
        next_step_type=tf.constant(next_step_type, tf.int32),
        reward=tf.constant(reward, tf.float32),
        discount=tf.constant(discount, tf.float32),
    )


# A transition, a termination, a truncation, a boundary and a cut; the second frame of
# each row is only the next observation.
EXPERIENCE = frames(
    [[FIRST, MID], [MID, LAST], [MID, LAST], [LAST, FIRST], [MID, MID]],
    [[MID, MID], [LAST, FIRST], [LAST, FIRST], [FIRST, MID], [LAST, FIRST]],
    [[1, 7], [2, 7], [3, 7], [4, 7], [5, 7]],
    [[1, 1], [0, 1], [1, 1], [1, 1], [1, 1]],
)


def regress(errors=None):
    """Returns the results, the targets, and the values `[2, B]` of an ensemble."""
    ensemble = CriticEnsembleNetwork((OBSERVATION, ACTION), num_critics=2, seed=1)
    time_step = ts.restart(tf.constant([[0.3], [-1.0], [2.0]]), batch_size=3)
    action = tf.fill([3, 1], 0.5)
    data = transitions.Transitions(
        time_step,
        action,
        time_step,
        tf.zeros([3]),
        tf.zeros([3]),
        tf.constant([True, True, False]),
    )
    targets = tf.constant([1.0, -2.0, 0.5])
    batch = updates.Batch(data, tf.ones([3]), training=True)
    found = EnsembleAgent(networks=[ensemble])._regress(batch, targets, errors)
    return found, targets.numpy(), critics.values(ensemble, time_step, action).numpy()


class EnsembleAgent(OneCriticAgent):
    def _check_critic(self, critic):
        assert critics.check_ensemble(critic, None)


def tripled(targets, predictions):
    return 3 * tf.math.squared_difference(targets, predictions), targets - predictions


@pytest.mark.parametrize(("errors", "factor"), [(None, 1), (tripled, 3)])
def test_the_losses_of_an_ensemble_are_summed_and_its_largest_error_is_taken(
    errors, factor
):
    (loss, extra), targets, values = regress(errors)
    differences = targets - values
    differences[:, 2] = 0  # It is masked.
    expected = factor * (differences**2).sum(axis=0)
    np.testing.assert_allclose(extra["td_loss"], expected, rtol=1e-5)
    np.testing.assert_allclose(loss, expected.mean(), rtol=1e-5)
    largest = np.abs(differences).argmax(axis=0)
    np.testing.assert_allclose(
        extra["td_error"], differences[largest, np.arange(3)], rtol=1e-5
    )


def test_a_loss_of_another_shape_is_refused():
    with pytest.raises(ValueError, match=r"loss_of_errors: got shape \(\)"):
        regress(lambda targets, values: (tf.reduce_sum(targets), targets - values))


@pytest.fixture(scope="module")
def agent():
    agent = OneCriticAgent()
    agent.initialize()
    return agent


def test_targets_masks_and_the_mean(agent):
    transitions = agent._batch(EXPERIENCE, None, False).data
    np.testing.assert_array_equal(transitions.valid, [True, True, True, False, False])
    # 10 times the reward, and gamma = 0.5; a truncation has its discount.
    np.testing.assert_array_equal(transitions.reward, [10, 20, 30, 0, 0])
    np.testing.assert_array_equal(transitions.discount, [0.5, 0, 0.5, 0, 0])
    first, second = EXPERIENCE.observation[:, 0], EXPERIENCE.observation[:, 1]
    action, _ = agent._actor_network(second)
    net = agent._critic_networks[0]
    targets = transitions.reward + transitions.discount * net((second, action))[0]
    errors = (targets - net((first, EXPERIENCE.action[:, 0]))[0]).numpy()
    errors[3:] = 0
    info = agent.loss(EXPERIENCE)
    np.testing.assert_allclose(info.extra.td_error, errors, rtol=1e-5)
    np.testing.assert_allclose(info.extra.td_loss, errors**2, rtol=1e-5)
    np.testing.assert_allclose(info.loss, np.sum(errors**2) / 5, rtol=1e-5)
    weights = np.array([0, 3, 1, 1, 1], np.float32)
    weighted = agent.loss(EXPERIENCE, weights=tf.constant(weights))
    np.testing.assert_allclose(
        weighted.loss, np.sum(weights * errors**2) / 5, rtol=1e-5
    )
    np.testing.assert_allclose(weighted.extra.td_error, errors, rtol=1e-5)


def test_the_error_of_two_critics_is_the_larger_one():
    agent = OneCriticAgent(networks=[critic(seed=2), critic(seed=3)])
    for net, bias in zip(agent._critic_networks, (1.0, 3.0), strict=True):
        net.create_variables()
        for variable in net.variables:
            variable.assign(tf.zeros_like(variable))
        net.variables[-1].assign([bias])
    experience = frames([[FIRST, MID]] * 2, [[MID, MID]] * 2, [[0.2, 0]] * 2, 0)
    experience = experience._replace(
        reward=tf.constant([[0.2, 0], [0.5, 0]]), discount=tf.zeros([2, 2])
    )
    # Targets are 2 and 5, so the errors are (1, -1) and (4, 2).
    extra = agent.loss(experience).extra
    np.testing.assert_allclose(extra.td_error, [1, 4], rtol=1e-5)
    np.testing.assert_allclose(extra.td_loss, [2, 20], rtol=1e-5)


def test_two_steps_end_at_the_end_of_an_episode():
    agent = OneCriticAgent(n_step_update=2)
    assert agent.train_sequence_length == 3
    experience = frames(
        [[MID, MID, MID], [MID, LAST, FIRST]],
        [[MID, MID, MID], [LAST, FIRST, MID]],
        [[1, 2, 7], [1, 2, 7]],
        [[1, 1, 1], [1, 1, 1]],
    )
    transitions = agent._batch(experience, None, False).data
    # 10 (1 + 0.5 * 2), then 0.5**2; and one step with 0.5.
    np.testing.assert_array_equal(transitions.reward, [20, 10])
    np.testing.assert_array_equal(transitions.discount, [0.25, 0.5])


def test_an_update_moves_weights_counts_and_clips():
    moved = []
    for one in [OneCriticAgent(gradient_clipping=c) for c in (None, 1e-3)]:
        one.initialize()
        before = one._critic_networks[0].get_weights()
        expected = one.loss(EXPERIENCE).loss
        np.testing.assert_allclose(one.train(EXPERIENCE).loss, expected, rtol=1e-6)
        after = one._critic_networks[0].get_weights()
        moved.append(
            [np.linalg.norm(a - b) for a, b in zip(after, before, strict=True)]
        )
        assert int(one.train_step_counter) == 1
        # Tau and period are 1, so the target has the new weights.
        for source, target in one._target_pairs:
            np.testing.assert_array_equal(source.variables[0], target.variables[0])
    assert max(moved[0]) > 1e-2
    # SGD's rate is 0.1, and each variable's gradient has norm 1e-3 at most.
    np.testing.assert_allclose(max(moved[1]), 1e-4, rtol=1e-2)


def test_seeds_depend_on_the_seed_and_the_step_alone():
    first, second, other = (OneCriticAgent(seed=s) for s in (5, 5, 6))

    def seed_of(agent):
        return agent._batch(EXPERIENCE, None, False).seed.numpy()

    before = seed_of(first)
    np.testing.assert_array_equal(before, seed_of(second))
    assert np.any(before != seed_of(other))
    first.train(EXPERIENCE)
    assert np.any(seed_of(first) != before)


def test_recurrent_networks_learn_from_sequences():
    specs = (OBSERVATION, ACTION)
    agent = OneCriticAgent(
        ActorRnnNetwork(OBSERVATION, ACTION, None, (3,), (2,), (3,), seed=1),
        [CriticRnnNetwork(specs, None, (3,), (3,), (3,), (2,), (3,), seed=2)],
    )
    assert agent.train_sequence_length is None
    experience = frames(
        [[FIRST, MID, LAST, FIRST]] * 2,
        [[MID, LAST, FIRST, MID]] * 2,
        [[1, 2, 100, 7]] * 2,
        [[1, 0, 1, 1]] * 2,
    )
    info = agent.loss(experience)
    assert info.extra.td_error.shape == (2, 3)
    np.testing.assert_array_equal(info.extra.td_error[:, 2], [0, 0])
    # Summed over time, then averaged over the examples.
    np.testing.assert_allclose(
        info.extra.td_loss, np.sum(info.extra.td_error.numpy() ** 2, axis=1), rtol=1e-5
    )
    np.testing.assert_allclose(info.loss, np.mean(info.extra.td_loss), rtol=1e-6)
    agent.train(experience)
    with pytest.raises(NotImplementedError, match="n_step_update"):
        OneCriticAgent(agent._actor_network, agent._critic_networks, n_step_update=2)


class ThreePartsInfo(NamedTuple):
    third_loss: Any
    first_loss: Any
    second_loss: Any
    missing_loss: Any
    before: Any


class ThreePartsAgent(OneCriticAgent):
    """Each part descends its own number by its gradient, and sees the others."""

    _info = ThreePartsInfo
    rate = 0.5

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.numbers = [Number(1.0), Number(10.0), Number(100.0)]
        self.seeds = []
        first, second, third = self.numbers
        # An optimizer serves any number of parts.
        optimizer = keras.optimizers.SGD(self.rate)
        self._parts = [
            self._part("first", self.first, [first], optimizer, weight=2.0),
            self._part("second", self.second, [second], optimizer, period=2),
            self._part(
                "third",
                self.third,
                [third],
                keras.optimizers.SGD(0.25),
                after=lambda: third.value.assign(tf.minimum(third.value, 99.0)),
                counts=False,
            ),
        ]

    def first(self, batch):
        self.seeds.append(batch.seed.numpy())
        assert not batch.details
        return self.numbers[0].value, {"before": self.numbers[0].value + 0.0}

    def second(self, batch):
        self.seeds.append(batch.seed.numpy())
        return self.numbers[1].value * self.numbers[0].value, {"hidden": 1.0}

    def third(self, batch):
        self.seeds.append(batch.seed.numpy())
        return self.numbers[2].value * batch.details["before"], {}


class Number(tf.Module):
    def __init__(self, value):
        super().__init__()
        self.value = tf.Variable(value)


def values_of(agent):
    return [float(number.value) for number in agent.numbers]


def test_parts_are_updated_in_turn_and_at_their_time():
    agent = ThreePartsAgent()
    expected = agent.loss(EXPERIENCE)
    # The loss is the sum of those that count, and changes nothing.
    assert expected.loss == 2 * 1 + 10 * 1
    assert expected.extra == (100, 2, 10, 0, 1)
    assert values_of(agent) == [1, 10, 100]
    info = agent.train(EXPERIENCE)
    # The first part goes down by 2 * 0.5; the second sees a 0, and its loss and slope
    # are 0; the third sees the details from before, and is projected to 99.
    assert info.extra == (100, 2, 0, 0, 1)
    assert info.loss == 2
    assert values_of(agent) == [0, 10, 99]
    info = agent.train(EXPERIENCE)
    # Not the second part's time: its last loss stays.
    assert info.extra == (0, 0, 0, 0, 0)
    assert values_of(agent) == [-1, 10, 99]
    info = agent.train(EXPERIENCE)
    assert info.extra == (-99, -2, -20, 0, -1)
    assert values_of(agent) == [-2, 11, 99]
    assert int(agent.train_step_counter) == 3


def test_each_part_has_a_seed_of_its_own():
    agent = ThreePartsAgent()
    agent.loss(EXPERIENCE)
    assert len({tuple(seed) for seed in agent.seeds}) == 3
    agent.seeds.clear()
    agent.loss(EXPERIENCE, seed=3)
    np.testing.assert_array_equal(agent.seeds, seeds.split_seed(3, 3))


def test_the_learning_rates_of_all_parts_are_in_the_log():
    rates = {name: float(rate) for name, rate in ThreePartsAgent().diagnose().items()}
    assert rates == {
        "first_learning_rate": 0.5,
        "second_learning_rate": 0.5,
        "third_learning_rate": 0.25,
    }


def test_what_parts_hold_is_saved():
    agent = ThreePartsAgent()
    held = {id(v) for v in agent.variables()}
    assert all(id(number.value) in held for number in agent.numbers)
    assert any(v.name.startswith("second_loss") for v in agent.variables())


@pytest.mark.parametrize(
    ("kind", "name", "instead"),
    [
        (agents.Td3Agent, "_compute_next_values", r"_critic_loss\(batch\)"),
        (agents.IqlAgent, "_td_error", r"_critic_loss\(batch\), which calls _regress"),
        (agents.DdpgAgent, "_compute_actor_loss", r"_actor_loss\(batch\)"),
        (agents.SacAgent, "_compute_entropy", r"_alpha_loss\(batch\)"),
        (agents.SacAgent, "alpha_loss", r"_alpha_loss\(batch\)"),
        (agents.MpoAgent, "_next_values", r"_critic_loss\(batch\)"),
        (agents.DmpoAgent, "_action_values", r".* and _actor_loss\(batch\)"),
    ],
)
def test_a_hook_that_is_gone_is_refused_with_what_to_override(kind, name, instead):
    with pytest.raises(TypeError, match=rf"Mine\.{name}: .* override {instead}"):
        type("Mine", (kind,), {name: lambda self, *args: None})


def test_numbers_for_a_log(agent):
    assert set(agent.diagnose()) == {"learning_rate"}
    values = agent.diagnose(EXPERIENCE)
    errors = agent.loss(EXPERIENCE).extra.td_error
    np.testing.assert_allclose(values["td_error"], np.abs(errors[:3]).mean(), rtol=1e-5)
    net = agent._critic_networks[0]
    inputs = EXPERIENCE.observation[:3, 0], EXPERIENCE.action[:3, 0]
    np.testing.assert_allclose(values["q_value"], np.mean(net(inputs)[0]), rtol=1e-5)


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        (BoundedTensorSpec([], tf.int64, 0, 1), "discrete actions with agents.Dqn"),
        (tf.TensorSpec([1], tf.float32), "agents.ReinforceAgent"),
        (BoundedTensorSpec([1], tf.float32, -1, np.inf), "agents.ReinforceAgent"),
        (
            {"a": ACTION, "b": BoundedTensorSpec([1], tf.float32, -3.4e38, 3.4e38)},
            "action_spec b: TD3 expects a finite minimum",
        ),
    ],
)
def test_actions_must_be_bounded_floats(spec, message):
    with pytest.raises(ValueError, match=message):
        checks.as_continuous_action_spec(spec, "TD3")


def test_a_critic_returns_one_value():
    layer = keras.Sequential([keras.layers.Concatenate(), keras.layers.Dense(1)])
    net, _ = target_networks.with_target(layer, None, "T", (OBSERVATION, ACTION))
    with pytest.raises(ValueError, match="expected one float for each pair"):
        OneCriticAgent(networks=[net])


def twins(first, second=None, target=None, second_target=None):
    return target_networks.twin_critics(
        first, second, target, second_target, (OBSERVATION, ACTION)
    )


@pytest.mark.parametrize("seed", [None, 3])
def test_twin_critics_start_different(seed):
    (first, target), (second, target_2) = twins(critic(seed=seed))
    kernels = [n.variables[0].numpy() for n in (first, second, target, target_2)]
    for i in range(4):
        for j in range(i):
            assert np.all(kernels[i] != kernels[j])


def test_copies_of_a_seeded_keras_layer_start_different():
    initializer = keras.initializers.RandomNormal(seed=1)
    spec = tf.TensorSpec([3], tf.float32)
    net, _ = target_networks.with_target(
        keras.layers.Dense(1, kernel_initializer=initializer), None, "Target", spec
    )
    second = target_networks.twin(net, None, "Second", spec)
    assert np.all(net.variables[0].numpy() != second.variables[0].numpy())


def test_equal_twins_are_warned_of():
    first, second = critic(seed=1), critic(seed=1)
    with pytest.warns(UserWarning, match="got equal initial weights"):
        twins(first, second)


def test_the_target_of_a_critic_that_is_not_given_is_refused():
    with pytest.raises(ValueError, match="target_critic_network_2: expected None"):
        twins(critic(), second_target=critic())
