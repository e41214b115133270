"""Agents whose networks see normalized observations, and whose losses see such rewards.

An agent with normalizers on raw data does what the same agent without normalizers does
on data that NumPy has normalized.
"""

import keras
import numpy as np
import pytest
import tensorflow as tf

from tests.pairs import some_slow
from tfrl import agents, networks
from tfrl.policies import policy_saver
from tfrl.specs import tensor_spec
from tfrl.trajectories import time_step as ts
from tfrl.trajectories import trajectory
from tfrl.utils import variables
from tfrl.utils.reward_normalizer import RewardNormalizer
from tfrl.utils.tensor_normalizer import (
    EMATensorNormalizer,
    StreamingTensorNormalizer,
)

OBSERVATION = tf.TensorSpec([3])
TIME_STEP = ts.time_step_spec(OBSERVATION)
FORCE = tensor_spec.BoundedTensorSpec([1], tf.float32, -1, 1)
CHOICE = tensor_spec.BoundedTensorSpec([], tf.int64, 0, 1)
FIRST, MID, LAST = 0, 1, 2
BATCH = 6
RNG = np.random.default_rng(5)
RAW = RNG.normal([1e3, -50, 0], [20, 5, 1], [BATCH, 3, 3]).astype(np.float32)
REWARDS = RNG.normal(10, 10, [BATCH, 3]).astype(np.float32)


def actor(action_spec, **kwargs):
    return networks.ActorDistributionNetwork(
        OBSERVATION, action_spec, fc_layer_params=(4,), seed=1, **kwargs
    )


def critic(seed=2):
    return networks.CriticNetwork(
        (OBSERVATION, FORCE), joint_fc_layer_params=(4,), seed=seed
    )


def q_network(seed=3):
    return networks.QNetwork(OBSERVATION, CHOICE, fc_layer_params=(4,), seed=seed)


def value_network():
    return networks.ValueNetwork(OBSERVATION, fc_layer_params=(4,), seed=4)


def adams(number):
    return [keras.optimizers.Adam(1e-2) for _ in range(number)]


def make_ddpg(kind=agents.DdpgAgent, **kwargs):
    return kind(
        TIME_STEP,
        FORCE,
        networks.ActorNetwork(OBSERVATION, FORCE, fc_layer_params=(4,), seed=1),
        critic(),
        *adams(2),
        **kwargs,
    )


def make_td3(**kwargs):
    return make_ddpg(agents.Td3Agent, critic_network_2=critic(5), **kwargs)


def make_sac(kind=agents.SacAgent, **kwargs):
    projection = agents.sac.TanhNormalProjectionNetwork
    return kind(
        TIME_STEP,
        FORCE,
        critic(),
        actor(FORCE, continuous_projection_net=projection),
        *adams(3),
        critic_network_2=critic(5),
        greedy_eval=True,
        **kwargs,
    )


def make_cql(seed, **kwargs):
    return make_sac(
        agents.CqlSacAgent,
        cql_alpha=1.0,
        num_cql_samples=2,
        include_critic_entropy_term=True,
        use_lagrange_cql_alpha=False,
        random_seed=seed,
        **kwargs,
    )


def make_discrete_sac(**kwargs):
    return agents.DiscreteSacAgent(
        TIME_STEP,
        CHOICE,
        q_network(),
        actor(CHOICE),
        *adams(3),
        critic_network_2=q_network(5),
        greedy_eval=True,
        **kwargs,
    )


def make_iql(**kwargs):
    return agents.IqlAgent(
        TIME_STEP,
        FORCE,
        critic(),
        value_network(),
        actor(FORCE),
        *adams(3),
        critic_network_2=critic(5),
        **kwargs,
    )


def make_dqn(**kwargs):
    return agents.DqnAgent(TIME_STEP, CHOICE, q_network(), *adams(1), **kwargs)


def make_reinforce(**kwargs):
    return agents.ReinforceAgent(
        TIME_STEP, CHOICE, actor(CHOICE), *adams(1), value_network(), **kwargs
    )


def make_cloning(reward_normalizer=None, **kwargs):
    return agents.BehavioralCloningAgent(
        TIME_STEP, FORCE, actor(FORCE), *adams(1), num_outer_dims=2, **kwargs
    )


KINDS = {
    "dqn": make_dqn,
    "ddpg": make_ddpg,
    "td3": make_td3,
    "sac": make_sac,
    "cql": make_cql,
    "discrete_sac": make_discrete_sac,
    "iql": make_iql,
    "reinforce": make_reinforce,
    "cloning": make_cloning,
}


def made(make, **kwargs):
    agent = make(seed=7, **kwargs)
    agent.initialize()
    return agent


def experience(agent, observation, reward):
    """Frames in mid-episode, or whole episodes of three frames."""
    length = agent.train_sequence_length or 3
    discrete = agent.action_spec == CHOICE
    action = np.arange(BATCH * length).reshape(BATCH, length) % 2
    types = np.full([BATCH, length], MID, np.int32)
    next_types = types.copy()
    if agent.train_sequence_length is None:
        types[:, 0], next_types[:, -1] = FIRST, LAST
    return trajectory.Trajectory(
        step_type=tf.constant(types),
        observation=tf.constant(observation[:, :length], tf.float32),
        action=tf.constant(action)
        if discrete
        else tf.constant(action[..., np.newaxis] - 0.5, tf.float32),
        policy_info=(),
        next_step_type=tf.constant(next_types),
        reward=tf.constant(reward[:, :length], tf.float32),
        discount=tf.fill([BATCH, length], 0.9),
    )


def normalized(observation):
    flat = RAW.reshape(-1, 3).astype(np.float64)
    scaled = (observation - flat.mean(0)) / np.sqrt(flat.var(0) + 1e-3)
    return np.clip(scaled, -5, 5)


def normalizers():
    observations = StreamingTensorNormalizer(OBSERVATION)
    observations.update(tf.constant(RAW))
    rewards = RewardNormalizer(BATCH, gamma=0.0, clip_value=2.5)
    rewards.update(tf.constant(REWARDS), tf.zeros([BATCH, 3], tf.bool))
    return {"observation_normalizer": observations, "reward_normalizer": rewards}


def check_equal(agent, plain):
    weights = [v.numpy() for v in plain.variables()]
    assert len(agent.variables()) > len(weights)
    statistics = {
        id(v)
        for part in (agent.observation_normalizer, agent.reward_normalizer)
        if part is not None
        for v in variables.tracked_variables(part)
    }
    others = [v for v in agent.variables() if id(v) not in statistics]
    for one, other in zip(others, weights, strict=True):
        np.testing.assert_allclose(one.numpy(), other, rtol=2e-4, atol=1e-5)


@pytest.mark.parametrize(
    # DDPG does as TD3, CQL and discrete SAC as SAC, and cloning has no values.
    "kind",
    some_slow(KINDS, fast=("dqn", "sac", "reinforce")),
)
def test_policies_losses_and_updates_see_normalized_data(kind):
    agent, plain = made(KINDS[kind], **normalizers()), made(KINDS[kind])
    scaled = np.minimum(REWARDS / REWARDS.astype(np.float64).std(), 2.5)
    raw = experience(agent, RAW, REWARDS)
    small = experience(plain, normalized(RAW), scaled)
    moments = tf.nest.flatten(agent.observation_normalizer.variables)
    before = [variable.numpy() for variable in moments]
    losses = agent.train(raw).loss, plain.train(small).loss
    np.testing.assert_allclose(*losses, rtol=1e-4)
    check_equal(agent, plain)
    np.testing.assert_allclose(agent.loss(raw).loss, plain.loss(small).loss, rtol=1e-4)
    steps = [ts.restart(x[:, 0], BATCH) for x in (raw.observation, small.observation)]
    for name in ("policy", "collect_policy"):
        actions = [
            getattr(each, name).action(step, seed=3).action
            for each, step in zip((agent, plain), steps, strict=True)
        ]
        np.testing.assert_allclose(*actions, rtol=1e-4, atol=1e-5)
    for old, new in zip(before, moments, strict=True):
        np.testing.assert_array_equal(old, new)


def test_rewards_are_clipped_one_by_one_before_they_are_added_up():
    agent = made(make_dqn, n_step_update=2, **normalizers())
    plain = made(make_dqn, n_step_update=2)
    scaled = np.minimum(REWARDS / REWARDS.astype(np.float64).std(), 2.5)
    assert 0 < np.count_nonzero(scaled == 2.5) < scaled.size
    np.testing.assert_allclose(
        agent.loss(experience(agent, RAW, REWARDS)).loss,
        plain.loss(experience(plain, normalized(RAW), scaled)).loss,
        rtol=1e-4,
    )


def test_rewards_of_transitions_are_normalized_too():
    agent = made(make_ddpg, **normalizers())
    frames = experience(agent, RAW, REWARDS)
    transition = trajectory.to_transition(frames)
    squeezed = tf.nest.map_structure(lambda t: tf.squeeze(t, 1), transition)
    np.testing.assert_allclose(
        agent.loss(squeezed).loss, agent.loss(frames).loss, rtol=1e-6
    )
    np.testing.assert_allclose(
        agent.critic_loss(
            squeezed.time_step, squeezed.action_step.action, squeezed.next_time_step
        ),
        agent.loss(frames).extra.critic_loss,
        rtol=1e-6,
    )


def test_boundaries_give_their_observations_and_no_rewards():
    observations = StreamingTensorNormalizer(OBSERVATION)
    rewards = RewardNormalizer(gamma=0.0, clip_value=0)
    agent = made(
        make_dqn, observation_normalizer=observations, reward_normalizer=rewards
    )
    # An episode of two steps, whose last observation is in the boundary; padding.
    steps = [(FIRST, MID, 1.0), (MID, LAST, 3.0), (LAST, FIRST, 9.0), (LAST, LAST, 9.0)]
    for i, (step_type, next_step_type, reward) in enumerate(steps):
        agent.update_normalizers(
            trajectory.Trajectory(
                step_type=tf.constant([step_type]),
                observation=tf.fill([1, 3], float(i)),
                action=tf.constant([0], tf.int64),
                policy_info=(),
                next_step_type=tf.constant([next_step_type]),
                reward=tf.constant([reward]),
                discount=tf.constant([1.0]),
            )
        )
    count, mean, squares, _ = observations.variables
    assert count == 3
    np.testing.assert_allclose(mean, [1, 1, 1], rtol=1e-6)
    np.testing.assert_allclose(squares, [2, 2, 2], rtol=1e-6)
    # The standard deviation of 1 and 3 is 1.
    np.testing.assert_allclose(rewards.normalize(tf.constant([4.0])), [4], rtol=1e-6)


def test_sequences_move_moving_averages_by_their_mean():
    agent = made(
        make_dqn, observation_normalizer=EMATensorNormalizer(OBSERVATION, "ema", 0.5)
    )
    agent.update_normalizers(experience(agent, RAW, REWARDS))
    means, _ = agent.observation_normalizer.variables
    np.testing.assert_allclose(means, RAW[:, :2].mean((0, 1)) / 2, rtol=1e-5)


def test_masks_of_actions_are_not_normalized():
    spec = {"x": OBSERVATION, "mask": tf.TensorSpec([2], tf.int32)}
    normalizer = StreamingTensorNormalizer(OBSERVATION)
    agent = agents.DqnAgent(
        ts.time_step_spec(spec),
        CHOICE,
        q_network(),
        *adams(1),
        observation_and_action_constraint_splitter=lambda o: (o["x"], o["mask"]),
        observation_normalizer=normalizer,
    )
    observation = {"x": RAW[:, :2], "mask": np.tile(np.int32([1, 0]), [BATCH, 2, 1])}
    frames = experience(agent, RAW, REWARDS)._replace(
        observation=tf.nest.map_structure(tf.constant, observation)
    )
    agent.update_normalizers(frames)
    np.testing.assert_allclose(
        normalizer.variables[1], RAW[:, :2].mean((0, 1)), rtol=1e-5
    )
    first = tf.nest.map_structure(lambda t: t[:, 0], frames.observation)
    assert not agent.policy.action(ts.restart(first, BATCH)).action.numpy().any()
    assert np.isfinite(agent.train(frames).loss)


def test_checkpoints_hold_the_statistics(tmp_path):
    agent, other = (
        made(
            make_ddpg,
            observation_normalizer=StreamingTensorNormalizer(OBSERVATION),
            reward_normalizer=RewardNormalizer(BATCH),
        )
        for _ in range(2)
    )
    frames = experience(agent, RAW, REWARDS)
    agent.update_normalizers(frames)
    path = tf.train.Checkpoint(agent=agent).write(str(tmp_path / "agent"))
    tf.train.Checkpoint(agent=other).read(path).assert_existing_objects_matched()
    for each in (agent, other):
        each.update_normalizers(frames)
        each.train(frames)
    for one, restored in zip(agent.variables(), other.variables(), strict=True):
        np.testing.assert_array_equal(one.numpy(), restored.numpy())
    assert other.observation_normalizer.variables[0] == 4 * BATCH


@pytest.mark.slow
def test_a_policy_loads_with_the_statistics_of_its_checkpoint(tmp_path):
    """Those that moved after the policy was traced."""
    agent = made(
        make_ddpg, observation_normalizer=StreamingTensorNormalizer(OBSERVATION)
    )
    step = ts.restart(tf.constant(RAW[:, 0]), BATCH)
    before = agent.policy.action(step).action
    saver = policy_saver.PolicySaver(agent.policy)
    agent.update_normalizers(experience(agent, RAW, REWARDS))
    saver.save(str(tmp_path))
    expected = agent.policy.action(step).action
    loaded = tf.saved_model.load(str(tmp_path))
    np.testing.assert_allclose(loaded.action(step).action, expected, rtol=1e-6)
    assert np.abs(before - expected).max() > 1e-4


@pytest.mark.parametrize(
    ("normalizer", "message"),
    [
        (
            StreamingTensorNormalizer(tf.TensorSpec([2])),
            r"got one for float32 \(2,\), expected one for float32 \(3,\)",
        ),
        (StreamingTensorNormalizer({"a": OBSERVATION}), r"got one for a float32"),
    ],
)
def test_normalizers_of_other_observations_are_refused(normalizer, message):
    with pytest.raises(ValueError, match=f"observation_normalizer: {message}"):
        make_dqn(observation_normalizer=normalizer)


def test_images_are_refused():
    spec = {"image": tf.TensorSpec([8, 8, 1], tf.uint8), "speed": tf.TensorSpec([1])}
    with pytest.raises(ValueError, match=r"got image of dtype uint8.*preprocessing"):
        agents.DqnAgent(
            ts.time_step_spec(spec),
            CHOICE,
            q_network(),
            *adams(1),
            observation_normalizer=StreamingTensorNormalizer(spec),
        )


@pytest.mark.parametrize("name", ["observation_normalizer", "reward_normalizer"])
def test_other_objects_are_refused(name):
    with pytest.raises(TypeError, match=f"{name}: got 5, expected"):
        make_dqn(**{name: 5})


@pytest.mark.slow
@pytest.mark.parametrize("learns", [True, False])
def test_values_of_observations_on_a_large_offset_are_learned(learns):
    """The reward of an action is 1 on one side of an offset of 10,000, else 0."""
    kwargs = {}
    if learns:
        kwargs["observation_normalizer"] = StreamingTensorNormalizer(OBSERVATION)
    agent = made(make_dqn, gamma=0.0, **kwargs)
    sides = np.random.default_rng(0).normal(size=[2000, 2, 3])
    actions = np.random.default_rng(1).integers(0, 2, [2000, 2])
    frames = trajectory.Trajectory(
        step_type=tf.fill([2000, 2], MID),
        observation=tf.constant(1e4 + 30 * sides, tf.float32),
        action=tf.constant(actions),
        policy_info=(),
        next_step_type=tf.fill([2000, 2], MID),
        reward=tf.constant((sides[:, :, 0] > 0) == actions, tf.float32),
        discount=tf.ones([2000, 2]),
    )
    agent.update_normalizers(frames)

    @tf.function
    def train(times):
        for _ in tf.range(times):
            agent.train(frames)

    train(100)
    chosen = agent.policy.action(ts.restart(frames.observation[:, 0], 2000)).action
    accuracy = np.mean(chosen == (sides[:, 0, 0] > 0))
    assert (accuracy > 0.9) == learns
