"""PPO's advantages, losses and updates against numbers by hand, NumPy and TFP."""

import functools

import keras
import numpy as np
import pytest
import tensorflow as tf
import tensorflow_probability as tfp

from tests.agents.on_policy import rollouts
from tests.agents.on_policy.rollouts import collect, flat
from tests.pairs import some_slow
from tfrl import agents, networks, policies
from tfrl.specs import tensor_spec
from tfrl.trajectories import time_step as ts
from tfrl.utils import common, reward_normalizer

OBSERVATION = tf.TensorSpec([2], tf.float32)
CHOICE = tensor_spec.BoundedTensorSpec([], tf.int32, 0, 2)
FORCE = tensor_spec.BoundedTensorSpec([2], tf.float32, -1, 1)
SWITCHES = tensor_spec.BoundedTensorSpec([3], tf.int64, 1, 2)
# As `OnPolicyLoop` trains.
MINIBATCHES = {
    "num_epochs": 1,
    "use_gae": True,
    "use_td_lambda_return": True,
    "compute_value_and_advantage_in_train": False,
    "update_normalizers_in_train": False,
}
ROWS = ["fmmMbfm", "mTbfmmm"]


def actor(action_spec, observation_spec=OBSERVATION, **kwargs):
    return networks.ActorDistributionNetwork(
        observation_spec, action_spec, fc_layer_params=(4,), seed=1, **kwargs
    )


def value(observation_spec=OBSERVATION):
    return networks.ValueNetwork(observation_spec, fc_layer_params=(4,), seed=2)


def make(
    action_spec=CHOICE,
    kind=agents.PPOClipAgent,
    observation_spec=OBSERVATION,
    actor_net=None,
    value_net=None,
    optimizer=None,
    **kwargs,
):
    arguments = {"normalize_observations": False, "normalize_rewards": False}
    return kind(
        ts.time_step_spec(observation_spec),
        action_spec,
        optimizer=optimizer or keras.optimizers.Adam(1e-2),
        actor_net=actor_net or actor(action_spec),
        value_net=value_net or value(),
        **{**arguments, **kwargs},
    )


def weights(agent):
    return [v.numpy() for v in agent.variables()]


def check_equal(one, other, **kwargs):
    for a, b in zip(weights(one), weights(other), strict=True):
        np.testing.assert_allclose(a, b, **{"rtol": 1e-5, "atol": 1e-6, **kwargs})


# --- Returns and advantages.


def critic_is_the_observation():
    return keras.layers.Dense(1, use_bias=False, kernel_initializer="ones")


def worked_frames(agent, row, values, rewards):
    frames, _ = collect(agent, row)
    return frames._replace(
        observation=tf.constant(values, tf.float32)[None, :, None],
        reward=tf.constant([*rewards, np.nan], tf.float32)[None],
    )


def of_values(**kwargs):
    spec = tf.TensorSpec([1], tf.float32)
    return make(
        observation_spec=spec,
        actor_net=actor(CHOICE, spec),
        value_net=critic_is_the_observation(),
        **{**MINIBATCHES, "discount_factor": 0.5, "lambda_value": 0.5, **kwargs},
    )


# A termination, its boundary, a truncation, its boundary, a cut, the rollout's end.
WORKED = (
    "fMbSbffm",
    [2.0, 4, 6, 7, 10, 4, 12, 2],
    [1.0, 2, 99, 3, 99, 1, 2],
)


def test_advantages_bootstrap_at_truncations_and_stop_at_boundaries_and_cuts():
    agent = of_values()
    data = agent.preprocess_sequence(worked_frames(agent, *WORKED))
    info = data.policy_info
    valid = [0, 1, 3, 6]
    # delta_0 = 1 + 0.5 * 4 - 2 and A_0 = delta_0 + 0.25 A_1; A_3 = 3 + 0.5 * 10 - 7.
    np.testing.assert_allclose(
        info["advantage"][0].numpy()[valid], [0.5, -2, 1, -9], rtol=1e-6
    )
    np.testing.assert_allclose(
        info["return"][0].numpy()[valid], [2.5, 2, 8, 3], rtol=1e-6
    )
    np.testing.assert_array_equal(info["value_prediction"][0], WORKED[1][:-1])
    # Nothing is known of what follows the frame before the cut, the fifth.
    np.testing.assert_array_equal(np.where(data.step_type[0] == 2)[0], [2, 4, 5])
    np.testing.assert_array_equal(data.reward[0], WORKED[2])


@pytest.mark.parametrize("row", ["fmmfmm", "fmTfmm", "fmT0ff"])
def test_the_step_before_an_unknown_successor_bootstraps_the_last_known_value(row):
    agent = of_values()
    values = [2.0, 4, 6, 100, 100, 100]
    frames = worked_frames(agent, row, values, [1.0, 2, 99, 99, 99])
    data = agent.preprocess_sequence(frames)
    assert data.step_type[0, 2] == 2
    # A_1 = 2 + 0.5 * 6 - 4 and A_0 = 1 + 0.5 * 4 - 2 + 0.25 A_1.
    np.testing.assert_allclose(
        data.policy_info["advantage"][0, :2], [1.25, 1], rtol=1e-6
    )
    np.testing.assert_allclose(data.policy_info["return"][0, :2], [3.25, 5], rtol=1e-6)


def test_advantages_without_gae_are_discounted_returns_minus_values():
    agent = of_values(use_gae=False, use_td_lambda_return=False)
    frames = worked_frames(agent, *WORKED)
    info = agent.preprocess_sequence(frames).policy_info
    returns = np.array([2.0, 2, 8, 3])
    valid = [0, 1, 3, 6]
    np.testing.assert_allclose(info["return"][0].numpy()[valid], returns, rtol=1e-6)
    np.testing.assert_allclose(
        info["advantage"][0].numpy()[valid], returns - [2, 4, 7, 12], rtol=1e-6
    )


@pytest.mark.parametrize("row", ["fmmm", "fmTb"])
def test_the_last_observation_counts_without_an_end_and_at_a_truncation(row):
    agent = of_values(discount_factor=1.0, lambda_value=1.0)
    frames = worked_frames(agent, row, [0.0, 0, 0, 10], [0.0, 0, 0])
    advantage = agent.preprocess_sequence(frames).policy_info["advantage"]
    np.testing.assert_array_equal(advantage, [[10, 10, 10]])


def test_a_sequence_without_batch_dimension_is_preprocessed_alike():
    agent = of_values()
    frames = worked_frames(agent, *WORKED)
    batched = agent.preprocess_sequence(frames)
    single = agent.preprocess_sequence(tf.nest.map_structure(lambda x: x[0], frames))
    tf.nest.map_structure(
        lambda a, b: np.testing.assert_array_equal(a[0], b), batched, single
    )


def test_td_lambda_returns_without_gae_warn():
    with pytest.warns(UserWarning, match="use_gae=True for TD"):
        make(use_td_lambda_return=True)


# --- The loss.


def softmax(logits):
    return np.exp(logits) / np.exp(logits).sum(-1, keepdims=True)


def test_the_loss_is_that_of_numpy():
    agent = make(
        importance_ratio_clipping=0.1,
        entropy_regularization=0.01,
        value_clipping=0.3,
        normalize_advantages=False,
        **MINIBATCHES,
    )
    frames, _ = collect(agent, *ROWS)
    data = agent.preprocess_sequence(frames)
    rng = np.random.default_rng(3)
    old_logits = rng.normal(size=[2, 6, 3]).astype(np.float32)
    old_values = rng.normal(size=[2, 6]).astype(np.float32)
    data.policy_info["dist_params"] = {"logits": tf.constant(old_logits)}
    data.policy_info["value_prediction"] = tf.constant(old_values)
    valid = np.array(data.step_type != rollouts.LAST)
    assert 0 < valid.sum() < valid.size
    new = softmax(agent.actor_net(data.observation)[0].logits.numpy())
    old = softmax(old_logits)
    chosen = data.action.numpy()[..., None]
    ratio = np.take_along_axis(new / old, chosen, -1)[..., 0]
    advantage = data.policy_info["advantage"].numpy()
    objective = np.minimum(ratio * advantage, np.clip(ratio, 0.9, 1.1) * advantage)
    values = agent.collect_policy.apply_value_network(data.observation, data.step_type)[
        0
    ].numpy()
    returns = data.policy_info["return"].numpy()
    near = old_values + np.clip(values - old_values, -0.3, 0.3)
    error = np.maximum((returns - values) ** 2, (returns - near) ** 2)
    entropy = -(new * np.log(new)).sum(-1)
    info = agent.loss(data).extra
    np.testing.assert_allclose(
        info.policy_gradient_loss, -(objective * valid).mean(), rtol=1e-4
    )
    np.testing.assert_allclose(
        info.value_estimation_loss, 0.5 * (error * valid).mean(), rtol=1e-4
    )
    np.testing.assert_allclose(
        info.entropy_regularization_loss, -0.01 * (entropy * valid).mean(), rtol=1e-4
    )
    np.testing.assert_allclose(
        info.clip_fraction, (np.abs(ratio - 1) > 0.1)[valid].mean(), rtol=1e-5
    )
    np.testing.assert_allclose(
        info.approx_kl, (ratio - 1 - np.log(ratio))[valid].mean(), rtol=1e-3
    )
    np.testing.assert_allclose(
        info.explained_variance,
        1 - (returns - old_values)[valid].var() / returns[valid].var(),
        rtol=1e-3,
    )
    numbers = agent.diagnose(data)
    np.testing.assert_allclose(numbers["entropy"], entropy[valid].mean(), rtol=1e-5)
    for name in ("approx_kl", "clip_fraction", "explained_variance"):
        np.testing.assert_allclose(numbers[name], getattr(info, name), rtol=1e-5)
    np.testing.assert_allclose(numbers["learning_rate"], 1e-2, rtol=1e-6)


def test_the_penalty_is_that_of_the_divergence_by_tfp():
    agent = make(
        FORCE,
        agents.PPOKLPenaltyAgent,
        optimizer=keras.optimizers.SGD(1e-3),
        initial_adaptive_kl_beta=0.7,
        adaptive_kl_target=0.01,
        adaptive_kl_tolerance=0.3,
        kl_cutoff_coef=10.0,
        kl_cutoff_factor=2.0,
        **MINIBATCHES,
    )
    frames, _ = collect(agent, *ROWS)
    data = agent.preprocess_sequence(frames)
    rng = np.random.default_rng(4)
    loc, scale = rng.normal(size=[2, 2, 6, 2]).astype(np.float32)
    old = {"loc": tf.constant(loc), "scale_diag": tf.constant(np.exp(scale))}
    data.policy_info["dist_params"] = old
    valid = np.array(data.step_type != rollouts.LAST)
    new = agent.actor_net(data.observation)[0]
    kl = tfp.distributions.MultivariateNormalDiag(**old).kl_divergence(new).numpy()
    mean_kl = (kl * valid).mean()
    assert mean_kl > 0.02
    expected = 0.7 * mean_kl + 10 * (mean_kl - 0.02) ** 2
    np.testing.assert_allclose(
        agent.loss(data).extra.kl_penalty_loss, expected, rtol=1e-4
    )
    cutoff = make(
        FORCE,
        agents.PPOAgent,
        initial_adaptive_kl_beta=0.0,
        kl_cutoff_coef=10.0,
        **MINIBATCHES,
    )
    np.testing.assert_allclose(
        cutoff.loss(data).extra.kl_penalty_loss, 10 * (mean_kl - 0.02) ** 2, rtol=1e-4
    )
    agent.train(data)
    np.testing.assert_allclose(agent.adaptive_kl_beta, 0.7 * 1.5, rtol=1e-6)
    # The policy that has just collected differs too little.
    data = agent.preprocess_sequence(collect(agent, *ROWS, seed=1)[0])
    agent.train(data, weights=tf.zeros([2]))
    np.testing.assert_allclose(agent.adaptive_kl_beta, 0.7, rtol=1e-6)


# The arguments of TF-Agents' methods.
TF_AGENTS_LOSSES = {
    "policy_gradient_loss": lambda self, time_steps, actions, sample_action_log_probs,
    advantages, current_policy_distribution, weights, debug_summaries=False: 0.0,
    "value_estimation_loss": lambda self, time_steps, returns, weights,
    old_value_predictions=None, debug_summaries=False, training=False: 0.0,
    "entropy_regularization_loss": lambda self, time_steps, entropy, weights,
    debug_summaries=False: 0.0,
    "kl_penalty_loss": lambda self, time_steps, action_distribution_parameters,
    current_policy_distribution, weights, debug_summaries=False: 0.0,
}  # fmt: skip


@pytest.mark.parametrize("name", TF_AGENTS_LOSSES)
@pytest.mark.parametrize("kind", [agents.PPOAgent, agents.PPOClipAgent])
def test_losses_with_tf_agents_arguments_are_refused(kind, name):
    with pytest.raises(TypeError, match=f"Mine.{name}: .* called by name"):
        type("Mine", (kind,), {name: TF_AGENTS_LOSSES[name]})


def test_losses_may_be_overridden():
    class Doubled(agents.PPOClipAgent):
        def value_estimation_loss(
            self, values, returns, weights, old_value_predictions, value_clipping
        ):
            return 2 * super().value_estimation_loss(
                values, returns, weights, old_value_predictions, value_clipping
            )

    frames, _ = collect(make(), *ROWS)
    plain, doubled = (
        make(kind=kind).loss(frames).extra.value_estimation_loss
        for kind in (agents.PPOClipAgent, Doubled)
    )
    np.testing.assert_allclose(doubled, 2 * plain, rtol=1e-6)


def test_a_cutoff_without_a_factor_is_refused():
    with pytest.raises(ValueError, match="kl_cutoff_factor: got None"):
        make(
            FORCE,
            agents.PPOKLPenaltyAgent,
            num_epochs=1,
            initial_adaptive_kl_beta=1.0,
            adaptive_kl_target=0.01,
            adaptive_kl_tolerance=0.3,
            kl_cutoff_coef=1.0,
        )


def test_a_step_without_return_and_advantage_is_trained_on():
    agent = make(normalize_advantages=False, **MINIBATCHES)
    frames, _ = collect(agent, "fm")
    data = agent.preprocess_sequence(frames)
    zero = tf.zeros([1, 1])
    data.policy_info.update({"return": zero, "advantage": zero})
    critic = data.policy_info["value_prediction"].numpy()
    np.testing.assert_allclose(
        agent.loss(data).loss, 0.5 * critic[0, 0] ** 2, rtol=1e-5
    )
    assert critic != 0


def test_only_valid_advantages_are_normalized():
    agent = make(**MINIBATCHES)
    frames, _ = collect(agent, "fmTbfmmb0")
    data = agent.preprocess_sequence(frames)
    data.policy_info["advantage"] = tf.constant([[1.0, 2, 3, 99, 6, 4, 2, 99]])
    agent_loss = agent.loss(data).extra.policy_gradient_loss
    # The mean of the normalized advantages is 0, and so is the loss at ratios of 1.
    np.testing.assert_allclose(agent_loss, 0, atol=1e-6)
    single = tf.nest.map_structure(lambda x: x[:, 2:4], data)
    np.testing.assert_allclose(
        agent.loss(single).extra.policy_gradient_loss, -3 / 2, rtol=1e-5
    )


def test_padding_and_boundaries_change_no_weight():
    rows = ["fmTbfM00"]
    agent, other = make(**MINIBATCHES), make(**MINIBATCHES)
    data = agent.preprocess_sequence(collect(agent, *rows)[0])
    void = (data.step_type == 2) | (data.step_type == data.next_step_type) & (
        data.step_type == 0
    )
    assert void.numpy().sum() == 2

    def replaced(x):
        mask = tf.reshape(void, [1, 7] + [1] * (x.shape.rank - 2))
        return tf.where(mask, tf.cast(1, x.dtype), x)

    changed = data._replace(
        observation=replaced(data.observation),
        action=replaced(data.action),
        policy_info=tf.nest.map_structure(replaced, data.policy_info),
    )
    agent.train(data)
    other.train(changed)
    check_equal(agent, other)


@pytest.mark.slow
def test_squashed_distributions_have_no_entropy_bonus():
    def squashed():
        return actor(
            FORCE, continuous_projection_net=agents.sac.TanhNormalProjectionNetwork
        )

    with pytest.raises(ValueError, match=r"got 0\.01.*tanh"):
        make(FORCE, actor_net=squashed(), entropy_regularization=0.01)
    agent = make(FORCE, actor_net=squashed(), **MINIBATCHES)
    data = agent.preprocess_sequence(collect(agent, *ROWS)[0])
    assert np.isfinite(agent.train(data).loss)
    assert "entropy" not in agent.diagnose(data)
    np.testing.assert_allclose(agent.loss(data).extra.kl_penalty_loss, 0, atol=1e-6)


# --- Updates.


def test_epochs_are_updates_on_the_same_data():
    agent = make(importance_ratio_clipping=0.2, num_epochs=3)
    other = make(
        importance_ratio_clipping=0.2,
        **{**MINIBATCHES, "use_gae": False, "use_td_lambda_return": False},
    )
    frames, _ = collect(agent, *ROWS)
    last = common.function(agent.train)(frames)
    data = other.preprocess_sequence(frames)
    for _ in range(3):
        expected = other.train(data)
    assert int(agent.train_step_counter) == 3
    np.testing.assert_allclose(last.loss, expected.loss, rtol=1e-5)
    check_equal(agent, other)


@pytest.mark.slow
def test_compiled_updates_are_those_of_plain_ones():
    settings = {"importance_ratio_clipping": 0.2, "entropy_regularization": 0.01}
    made = [
        make(FORCE, gradient_clipping=0.5, **settings, **MINIBATCHES) for _ in range(2)
    ]
    frames, _ = collect(made[0], *ROWS)
    functions = [
        (
            common.function(agent.preprocess_sequence, jit_compile=compiled),
            common.function(agent.train, jit_compile=compiled),
        )
        for agent, compiled in zip(made, (False, True), strict=True)
    ]
    for preprocess, train in functions:
        for _ in range(2):
            train(flat(preprocess(frames)))
        assert preprocess.experimental_get_tracing_count() == 1
        assert train.experimental_get_tracing_count() == 1
    check_equal(*made, rtol=1e-4, atol=1e-5)


def test_all_gradients_are_clipped_by_their_norm():
    agent = make(
        optimizer=keras.optimizers.SGD(1.0), gradient_clipping=0.01, **MINIBATCHES
    )
    before = weights(agent)
    agent.train(agent.preprocess_sequence(collect(agent, *ROWS)[0]))
    moved = [np.sum((a - b) ** 2) for a, b in zip(weights(agent), before, strict=True)]
    # The first of the others is the step counter.
    trained = sum(m for m in moved if m < 1)
    np.testing.assert_allclose(np.sqrt(trained), 0.01, rtol=1e-3)


def test_squares_of_kernels_are_penalised_by_owner():
    agent = make(policy_l2_reg=0.1, value_function_l2_reg=0.01, **MINIBATCHES)
    squares = [
        sum(np.sum(v.numpy() ** 2) for v in network.trainable_variables
            if v.name == "kernel")
        for network in (agent.actor_net, agent.value_net)
    ]  # fmt: skip
    data = agent.preprocess_sequence(collect(agent, *ROWS)[0])
    np.testing.assert_allclose(
        agent.loss(data).extra.l2_regularization_loss,
        0.1 * squares[0] + 0.01 * squares[1],
        rtol=1e-5,
    )


def test_a_schedule_narrows_the_range_with_the_updates():
    schedule = keras.optimizers.schedules.PolynomialDecay(10.0, 1, 0.0)
    agent = make(importance_ratio_clipping=schedule, **MINIBATCHES)
    data = agent.preprocess_sequence(collect(agent, *ROWS)[0])
    assert agent.train(data).extra.clip_fraction == 0
    assert agent.loss(data).extra.clip_fraction == 1
    # No update has clipped to a range of 0, so there is no share for a log.
    assert np.isnan(agent.diagnose(data)["clip_fraction"])


def test_a_log_counts_advantages_above_0_before_they_are_normalized():
    agent = make(normalize_advantages=True, **MINIBATCHES)
    data = agent.preprocess_sequence(collect(agent, *ROWS)[0])
    for offset, share in ((-100.0, 0.0), (100.0, 1.0)):
        moved = data.policy_info["advantage"] + offset
        info = {**data.policy_info, "advantage": moved}
        numbers = agent.diagnose(data._replace(policy_info=info))
        assert numbers["positive_advantages"] == share


# --- Normalizers.


def test_normalizers_are_numpys_and_move_after_the_updates():
    agent = make(
        num_epochs=2,
        normalize_observations=True,
        normalize_rewards=True,
        reward_norm_clipping=1.5,
        importance_ratio_clipping=1e-5,
    )
    frames, _ = collect(agent, *ROWS)
    counted = tf.nest.map_structure(lambda x: x[:, :-1].numpy(), frames)
    agent.train(frames)
    count, mean, squares, _ = agent.observation_normalizer.variables
    observations = counted.observation.reshape(-1, 2)
    assert count == 12
    np.testing.assert_allclose(mean, observations.mean(0), rtol=1e-5)
    np.testing.assert_allclose(squares / 12, observations.var(0), rtol=1e-4)
    rewards = counted.reward[counted.step_type != rollouts.LAST]
    raw = tf.constant([0.1, 100.0])
    np.testing.assert_allclose(
        agent.reward_normalizer.normalize(raw), [0.1 / rewards.std(), 1.5], rtol=1e-4
    )
    # With the statistics that they were collected with, all ratios are 1.
    frames, _ = collect(agent, *ROWS, seed=5)
    assert agent.loss(frames).extra.clip_fraction == 0
    agent.update_normalizers(frames)
    assert agent.loss(frames).extra.clip_fraction > 0


def test_advantages_are_those_of_normalized_rewards():
    normalizer = reward_normalizer.RewardNormalizer(2, gamma=0.9)
    agent, plain = (
        make(reward_normalizer=each, **MINIBATCHES) for each in (normalizer, None)
    )
    frames, _ = collect(agent, *ROWS)
    agent.update_normalizers(frames)
    scaled = frames._replace(reward=normalizer.normalize(frames.reward))
    assert np.abs(scaled.reward - frames.reward).max() > 0.1
    data = agent.preprocess_sequence(frames)
    np.testing.assert_allclose(
        data.policy_info["advantage"],
        plain.preprocess_sequence(scaled).policy_info["advantage"],
        rtol=1e-5,
    )
    np.testing.assert_array_equal(data.reward, frames.reward[:, :-1])


# --- Kinds of actions and networks.


@pytest.mark.parametrize(
    "action_spec", [SWITCHES, {"force": FORCE, "choice": (CHOICE,)}], ids=str
)
def test_vectors_and_nests_of_actions_train(action_spec):
    agent = make(action_spec, importance_ratio_clipping=1e-5, **MINIBATCHES)
    data = agent.preprocess_sequence(collect(agent, *ROWS)[0])
    info = agent.train(flat(data)).extra
    assert info.clip_fraction == 0
    after = agent.loss(flat(data)).extra
    assert after.clip_fraction > 0.5
    assert np.isfinite(after.approx_kl)


def recurrent(**kwargs):
    return make(
        actor_net=networks.ActorDistributionRnnNetwork(
            OBSERVATION,
            CHOICE,
            input_fc_layer_params=None,
            lstm_size=(3,),
            output_fc_layer_params=None,
            seed=1,
        ),
        value_net=networks.ValueRnnNetwork(
            OBSERVATION,
            input_fc_layer_params=None,
            lstm_size=(3,),
            output_fc_layer_params=None,
            seed=2,
        ),
        importance_ratio_clipping=1e-4,
        **{**MINIBATCHES, **kwargs},
    )


@pytest.mark.slow
def test_recurrent_networks_start_from_the_state_of_the_rollout():
    agent = recurrent()
    _, state = collect(agent, "fmmm", "fmmm")
    assert set(state) == {"actor_network_state", "value_network_state"}
    frames, _ = collect(agent, "mmTbfmm", "mmmmmmm", seed=1, state=state)
    data = agent.preprocess_sequence(frames, policy_state=state)
    fresh = agent.preprocess_sequence(frames)
    assert not np.allclose(
        data.policy_info["value_prediction"], fresh.policy_info["value_prediction"]
    )
    # The values were computed on the whole sequence.
    kept = agent.loss(data, policy_state=state).extra
    assert kept.clip_fraction == 0
    assert agent.loss(data).extra.clip_fraction > 0
    error = data.policy_info["return"] - data.policy_info["value_prediction"]
    valid = np.array(data.step_type != rollouts.LAST)
    np.testing.assert_allclose(
        kept.value_estimation_loss, 0.5 * (error**2 * valid).numpy().mean(), rtol=1e-4
    )
    rows = tf.nest.map_structure(lambda x: x[1:], (data, state))
    assert np.isfinite(agent.train(rows[0], policy_state=rows[1]).loss)


@pytest.mark.parametrize("lstm_size", [None, (3,)], ids=["forward", "recurrent"])
def test_noise_of_several_steps_keeps_the_recorded_distributions(lstm_size):
    actor_net, value_net = agents.ppo.ppo_networks.create_networks(
        OBSERVATION,
        FORCE,
        (4,),
        lstm_size=lstm_size,
        state_dependent_noise=True,
        seed=1,
    )
    agent = make(
        FORCE,
        actor_net=actor_net,
        value_net=value_net,
        exploration=functools.partial(
            policies.StateDependentNoisePolicy, sample_freq=3, seed=1
        ),
        importance_ratio_clipping=1e-4,
        **MINIBATCHES,
    )
    assert agent.collect_policy.is_recurrent == bool(lstm_size)
    _, state = collect(agent, "fmmm", "fmmm")
    frames, _ = collect(agent, "mmTbfmm", "mmmmmmm", seed=1, state=state)
    data = agent.preprocess_sequence(frames, policy_state=state)
    assert agent.loss(data, policy_state=state).extra.clip_fraction == 0
    if lstm_size:
        assert agent.loss(data).extra.clip_fraction > 0
    agent.train(data, policy_state=state)
    assert agent.loss(data, policy_state=state).extra.clip_fraction > 0.5


def test_layers_that_both_networks_share_are_trained_once():
    torso = keras.layers.Dense(4, activation="tanh")
    torso.build([None, 2])
    agent = make(
        actor_net=networks.Sequential(
            [
                torso,
                keras.layers.Dense(3),
                keras.layers.Lambda(lambda x: tfp.distributions.Categorical(logits=x)),
            ]
        ),
        value_net=networks.Sequential([torso, keras.layers.Dense(1)]),
        shared_vars_l2_reg=0.1,
        **MINIBATCHES,
    )
    data = agent.preprocess_sequence(collect(agent, *ROWS)[0])
    np.testing.assert_allclose(
        agent.loss(data).extra.l2_regularization_loss,
        0.1 * np.sum(torso.kernel.numpy() ** 2),
        rtol=1e-5,
    )
    before = torso.kernel.numpy()
    agent.train(data)
    assert np.abs(torso.kernel.numpy() - before).max() > 1e-3


class CountsCalls(keras.layers.Layer):
    """Counts its calls, and returns its inputs."""

    def __init__(self):
        super().__init__()
        self.num_calls = 0

    def call(self, inputs):
        self.num_calls += 1
        return inputs


class Whole(networks.Network):
    """Hides of which layers a network consists."""

    def __init__(self, network):
        super().__init__(network.input_tensor_spec, network.state_spec)
        self.network = network

    def call(self, inputs, **kwargs):
        return self.network(inputs, **kwargs)


@pytest.mark.parametrize(
    "kind", some_slow(["forward", "recurrent", "masked"], slow=["recurrent"])
)
def test_an_update_computes_shared_layers_once(kind):
    results = []
    for is_whole in (False, True):
        counter = CountsCalls()
        nets = agents.ppo.ppo_networks.create_networks(
            OBSERVATION,
            CHOICE,
            (4,),
            lstm_size=(3,) if kind == "recurrent" else None,
            share_layers=True,
            seed=1,
        )
        actor_net, value_net = (
            networks.Sequential([counter, *net.layers], input_spec=OBSERVATION)
            for net in nets
        )
        agent = (masked if kind == "masked" else make)(
            actor_net=Whole(actor_net) if is_whole else actor_net,
            value_net=Whole(value_net) if is_whole else value_net,
            optimizer=keras.optimizers.SGD(0.1),
            **({} if kind == "masked" else MINIBATCHES),
        )
        frames, _ = collect(agent, *ROWS)
        agent.update_normalizers(frames)
        data = agent.preprocess_sequence(frames)
        before = counter.num_calls
        loss = agent.train(data).loss
        calls = counter.num_calls - before
        trained = actor_net.trainable_variables + value_net.trainable_variables
        results.append((calls, loss, [v.numpy() for v in trained]))
    (once, ours, our_weights), (twice, theirs, their_weights) = results
    assert (once, twice) == (1, 2)
    np.testing.assert_allclose(ours, theirs, rtol=1e-5)
    assert len(our_weights) == len(their_weights)
    for one, other in zip(our_weights, their_weights, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)


# --- Masks.

MASKED = {"x": OBSERVATION, "mask": tf.TensorSpec([3], tf.int32)}


def masked(**kwargs):
    return make(
        observation_spec=MASKED,
        observation_and_action_constraint_splitter=lambda o: (o["x"], o["mask"]),
        normalize_observations=True,
        importance_ratio_clipping=1e-5,
        entropy_regularization=0.1,
        **MINIBATCHES,
        **kwargs,
    )


def observations(size, rng):
    # Two of three actions are invalid in most rows.
    mask = np.eye(3, dtype=np.int32)[rng.integers(3, size=size)]
    mask[: size // 4, 2] = 1
    x = rng.normal(size=[size, 2]).astype(np.float32)
    return {"x": tf.constant(x), "mask": tf.constant(mask)}


def test_masked_actions_are_never_taken():
    agent = masked()
    rng = np.random.default_rng(0)
    act = common.function(agent.collect_policy.action)
    train = common.function(agent.train)
    frames, _ = collect(agent, *["fm"] * 40)
    for seed in range(4):
        many = [observations(40, rng) for _ in range(2)]
        steps = [ts.restart(each, 40) for each in many]
        acted = [act(step, seed=tf.constant([3, seed])) for step in steps]
        for each, step in zip(many, acted, strict=True):
            assert is_valid(each, step.action)
        stack = tf.nest.map_structure(lambda *x: tf.stack(x, 1), *acted)
        frames = frames._replace(
            observation=tf.nest.map_structure(lambda *x: tf.stack(x, 1), *many),
            action=stack.action,
            policy_info=stack.info,
        )
        data = agent.preprocess_sequence(frames)
        assert train(data).extra.clip_fraction == 0
        for _ in range(5):
            info = train(data)
        assert np.isfinite(info.loss)
        agent.update_normalizers(frames)
    assert agent.observation_normalizer.tensor_spec == OBSERVATION
    assert is_valid(many[0], agent.policy.action(steps[0]).action)


def test_networks_may_split_off_the_mask_themselves():
    def split(network, passthrough_mask):
        return networks.MaskSplitterNetwork(
            lambda o: (o["x"], o["mask"]), network, passthrough_mask, MASKED
        )

    agent = make(
        observation_spec=MASKED,
        actor_net=split(actor(CHOICE), passthrough_mask=True),
        value_net=split(value(), passthrough_mask=False),
        importance_ratio_clipping=1e-5,
        **MINIBATCHES,
    )
    observation = observations(40, np.random.default_rng(2))
    step = agent.collect_policy.action(ts.restart(observation, 40), seed=1)
    assert is_valid(observation, step.action)
    frames, _ = collect(agent, *["fm"] * 40)
    data = agent.preprocess_sequence(frames)
    assert agent.loss(data).extra.clip_fraction == 0


def is_valid(observation, action):
    chosen = action.numpy()[:, np.newaxis]
    return np.take_along_axis(observation["mask"].numpy(), chosen, 1).all()


def test_entropy_and_divergence_are_those_of_valid_actions():
    agent = masked()
    observation = observations(8, np.random.default_rng(1))
    step = ts.restart(observation, 8)
    logits = agent.collect_policy.action(step, seed=1).info["dist_params"]["logits"]
    mask = observation["mask"].numpy()
    assert (logits.numpy()[mask == 0] < -1e38).all()
    probabilities = softmax(np.where(mask, logits, -np.inf))
    expected = -(probabilities * np.log(np.where(mask, probabilities, 1))).sum(-1)
    distribution = agent.collect_policy.distribution(step).action
    np.testing.assert_allclose(distribution.entropy(), expected, atol=1e-6)
    assert expected[0] > 0.1
    shift = np.float32([1, 0, -1])
    other = tfp.distributions.Categorical(
        logits=tf.where(mask == 1, logits + shift, logits.dtype.min)
    )
    q = softmax(np.where(mask, logits + shift, -np.inf))
    kl = (
        probabilities * np.log(np.where(mask, probabilities, 1) / np.where(mask, q, 1))
    ).sum(-1)
    np.testing.assert_allclose(distribution.kl_divergence(other), kl, atol=1e-6)
    with tf.GradientTape() as tape:
        tape.watch(logits)
        masked_logits = tf.where(mask == 1, logits, logits.dtype.min)
        total = tf.reduce_sum(
            tfp.distributions.Categorical(logits=masked_logits).entropy()
        )
    assert np.isfinite(tape.gradient(total, logits)).all()


# --- Errors.


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"actor_net": None}, TypeError, "actor_net: got None"),
        ({"num_epochs": 0}, ValueError, "num_epochs"),
        ({"lambda_value": 1.5}, ValueError, "lambda_value"),
        ({"importance_ratio_clipping": -0.2}, ValueError, "importance_ratio_clipping"),
        ({"entropy_regularization": -1.0}, ValueError, "entropy_regularization"),
        ({"gradient_clipping": 0.0}, ValueError, "gradient_clipping"),
        ({"reward_normalizer": 3}, TypeError, "reward_normalizer"),
    ],
)
def test_wrong_arguments_are_refused(arguments, error, message):
    with pytest.raises(error, match=message):
        agents.PPOAgent(
            ts.time_step_spec(OBSERVATION),
            CHOICE,
            keras.optimizers.Adam(),
            **{"actor_net": actor(CHOICE), "value_net": value(), **arguments},
        )


def test_networks_of_actions_and_of_many_values_are_refused():
    with pytest.raises(ValueError, match="expects distributions of actions"):
        make(FORCE, actor_net=networks.ActorNetwork(OBSERVATION, FORCE))
    with pytest.raises(ValueError, match="value_network emits multiple values"):
        make(value_net=keras.layers.Dense(2))


def test_one_frame_is_too_few():
    agent = make(**MINIBATCHES)
    frames, _ = collect(agent, "f")
    with pytest.raises(ValueError, match="expected at least 2 frames"):
        agent.preprocess_sequence(frames)
