"""Rankings: their probabilities, the scores of clicks, and that they are learned."""

import itertools

import keras
import numpy as np
import pytest
import tensorflow as tf

from tests.bandits import bandit_data as data
from tfrl import train
from tfrl.bandits import agents, policies
from tfrl.bandits import networks as bandit_networks
from tfrl.bandits.agents import ranking_agent
from tfrl.bandits.environments import ranking_environment
from tfrl.specs import tensor_spec
from tfrl.trajectories import time_step as ts
from tfrl.trajectories import trajectory

NUM_ITEMS, NUM_SLOTS = 4, 2
SPEC = data.per_arm_spec(2, 2, NUM_ITEMS)
PADDED = data.per_arm_spec(2, 2, NUM_ITEMS, has_number=True)
FEATURES = np.float32([[1.0, 0.0], [0.8, 0.6], [0.0, 1.0], [-1.0, 0.0]])
SCORES = np.float32([1.0, 0.8, 0.0, -1.0])  # Products with the global [1, 0].


def _network(spec=SPEC):
    """Scores are products of global and item features."""
    layers = {"kernel_initializer": "identity", "use_bias": False}
    identity = [keras.layers.Dense(2, **layers) for _ in range(2)]
    towers = [
        _sequential(layer, spec.observation[key].shape[-1:])
        for layer, key in zip(identity, ("global", "per_arm"), strict=True)
    ]
    module = bandit_networks.global_and_arm_feature_network
    return module.GlobalAndArmDotProductNetwork(spec.observation, *towers)


def _sequential(layer, shape):
    from tfrl import networks

    return networks.Sequential([layer], tf.TensorSpec(shape, tf.float32))


def _start(number, counts=None):
    observation = {
        "global": tf.repeat([[1.0, 0.0]], number, axis=0),
        "per_arm": tf.repeat(FEATURES[np.newaxis], number, axis=0),
    }
    if counts is not None:
        observation["num_actions"] = tf.constant(counts)
    return ts.restart(observation, batch_size=number)


def _policy(kind, spec=SPEC, **kwargs):
    return kind(
        NUM_ITEMS, NUM_SLOTS, spec, _network(spec), emit_log_probability=True, **kwargs
    )


def _exact(penalty):
    """The probability of each pair of items, by NumPy."""
    cosine = FEATURES @ FEATURES.T
    found = {}
    for first, second in itertools.permutations(range(NUM_ITEMS), 2):
        p = np.exp(SCORES) / np.exp(SCORES).sum()
        logits = SCORES + penalty * (-cosine[first] - 1)
        logits[first] = -np.inf
        q = np.exp(logits) / np.exp(logits).sum()
        found[first, second] = p[first] * q[second]
    return found


KINDS = {
    "no penalty": (policies.NoPenaltyRankingPolicy, {}, 0.0),
    "cosine": (
        policies.PenalizeCosineDistanceRankingPolicy,
        {"penalty_mixture_coefficient": 2.0},
        2.0,
    ),
}


@pytest.mark.parametrize("name", KINDS)
def test_rankings_have_the_probabilities_that_the_policy_tells(name):
    kind, arguments, penalty = KINDS[name]
    step = _policy(kind, **arguments).action(_start(5000), seed=1)
    exact = _exact(penalty)
    items = [tuple(pair) for pair in step.action.numpy()]
    for pair, probability in exact.items():
        assert items.count(pair) / 5000 == pytest.approx(probability, abs=0.025)
    logs = [np.log(exact[pair]) for pair in items]
    np.testing.assert_allclose(step.info.log_probability, logs, rtol=1e-3)


def test_three_slots_add_the_penalty_of_earlier_items_again():
    kind = policies.PenalizeCosineDistanceRankingPolicy
    policy = kind(NUM_ITEMS, 3, SPEC, _network(), emit_log_probability=True)
    step = policy.action(_start(1), seed=0)
    a, b, c = step.action.numpy()[0]
    cosine = FEATURES @ FEATURES.T
    logits, total = SCORES.copy(), 0.0
    lowest = np.zeros(NUM_ITEMS)
    for item in (a, b, c):
        total += logits[item] - np.log(np.exp(logits).sum())
        lowest = np.minimum(lowest, -cosine[item] - 1)
        logits = logits + lowest
        logits[item] = -np.inf
    np.testing.assert_allclose(step.info.log_probability, [total], rtol=1e-4)


@pytest.mark.parametrize(
    "kind",
    [
        policies.NoPenaltyRankingPolicy,
        policies.PenalizeCosineDistanceRankingPolicy,
        policies.DescendingScoreRankingPolicy,
    ],
)
def test_padding_is_never_chosen(kind):
    policy = _policy(kind, PADDED)
    step = policy.action(_start(4, [1, 2, 2, 4]), seed=3)
    items = step.action.numpy()
    np.testing.assert_array_equal(items[0], [0, NUM_ITEMS])
    assert sorted(items[1]) == sorted(items[2]) == [0, 1]
    assert (items[3] < NUM_ITEMS).all()
    assert float(step.info.log_probability[0]) == 0


def test_a_temperature_flattens_the_draws():
    policy = _policy(policies.NoPenaltyRankingPolicy, logits_temperature=1e6)
    first = policy.action(_start(5000), seed=2).action.numpy()[:, 0]
    np.testing.assert_allclose(np.bincount(first) / 5000, 0.25, atol=0.03)


def test_scores_of_clicks():
    scores = ranking_agent.compute_score_tensor_for_cascading(
        tf.constant([0, 2, 3]), tf.constant([5.0, 6.0, 7.0]), 3, non_click_score=-2.0
    )
    np.testing.assert_array_equal(scores, [[5, 0, 0], [-2, -2, 6], [-2, -2, -2]])


CASCADE = {
    "chosen_index": tensor_spec.BoundedTensorSpec([], tf.int32, 0, 2),
    "chosen_value": tf.TensorSpec([], tf.float32),
}
ACTION = tensor_spec.BoundedTensorSpec([NUM_SLOTS], tf.int32, 0, NUM_ITEMS - 1)


def _collected(agent, action, reward, counts=None):
    start = _start(len(action), counts)
    observation = tf.nest.map_structure(lambda x: x[tf.newaxis], start.observation)
    reward = tf.nest.map_structure(lambda x: tf.constant(x)[tf.newaxis], reward)
    info = tf.nest.map_structure(
        lambda spec: tf.zeros([1, len(action), *spec.shape]), agent.policy.info_spec
    )
    frames = trajectory.single_step(
        observation,
        tf.constant([action]),
        info,
        reward,
        tf.zeros([1, len(action)]),
    )
    return agent.preprocess_sequence(frames)


def test_the_loss_of_a_cascade_by_hand():
    spec = PADDED._replace(reward=CASCADE)
    agent = agents.RankingAgent(
        spec,
        ACTION,
        _network(PADDED),
        keras.optimizers.SGD(0.1),
        positional_bias_type=ranking_agent.PositionalBiasType.BASE,
        positional_bias_severity=1.0,
        positional_bias_positive_only=True,
    )
    reward = {
        "chosen_index": np.int32([0, 1, 2]),
        "chosen_value": np.float32([1.0, 2.0, 0.0]),
    }
    frames = _collected(agent, [[1, 0], [0, 3], [2, 4]], reward, [4, 4, 1])
    # The first row's second slot is after the click, the last row's is empty.
    errors = [(1 - 0.8) ** 2, (-1 - 1) ** 2, (2 + 1) ** 2, (-1 - 0) ** 2]
    expected = np.average(errors, weights=[3, 1, 2, 1])
    info = agent.train(frames, tf.constant([[3.0, 1.0, 1.0]]))
    assert float(info.loss) == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize(("name", "slots"), [("base", [1, 8]), ("exponent", [1, 3])])
def test_positional_biases_have_names_as_in_tf_agents(name, slots):
    spec = SPEC._replace(reward=tf.TensorSpec([NUM_SLOTS], tf.float32))
    agent = agents.RankingAgent(
        spec,
        ACTION,
        _network(),
        None,
        feedback_model=ranking_agent.FeedbackModel.SCORE_VECTOR,
        policy_type=ranking_agent.RankingPolicyType.DESCENDING_SCORES,
        positional_bias_type=name,
        positional_bias_severity=3.0,
    )
    frames = _collected(agent, [[0, 2]], np.float32([[0.0, 2.0]]))  # Errors 1 and 4.
    expected = np.average([1, 4], weights=slots)  # (k + 1)^3, and 3^k.
    assert float(agent.loss(frames).loss) == pytest.approx(expected)


def test_a_positional_bias_that_is_none_is_refused_at_once():
    with pytest.raises(ValueError, match="type: got 'invalid', expected a Positional"):
        agents.RankingAgent(
            SPEC, ACTION, _network(), None, positional_bias_type="invalid"
        )


def test_the_loss_of_score_vectors_with_given_weights():
    spec = SPEC._replace(reward=tf.TensorSpec([NUM_SLOTS], tf.float32))
    agent = agents.RankingAgent(
        spec,
        ACTION,
        _network(),
        None,
        feedback_model=ranking_agent.FeedbackModel.SCORE_VECTOR,
        policy_type=ranking_agent.RankingPolicyType.DESCENDING_SCORES,
        positional_bias_type=ranking_agent.PositionalBiasType.FIXED_BIAS_WEIGHTS,
        positional_bias_weights=[1.0, 3.0],
    )
    frames = _collected(agent, [[0, 2]], np.float32([[0.0, 1.0]]))
    assert float(agent.loss(frames).loss) == pytest.approx((1 * 1 + 3 * 1) / 4)
    with pytest.raises(ValueError, match="positional_bias_severity: got None"):
        agents.RankingAgent(
            spec,
            ACTION,
            _network(),
            None,
            positional_bias_type=ranking_agent.PositionalBiasType.EXPONENT,
        )


def _environment(**kwargs):
    return ranking_environment.RankingTFEnvironment(
        2 * np.eye(2), 6, [1.0, 0.5, 0.25], 32, seed=0, **kwargs
    )


def test_clicks_follow_relevance_and_place():
    bandit = _environment(is_cascading=False)
    rates = []
    for _ in range(20):
        step = bandit.reset() if not rates else bandit.current_time_step()
        common, items = step.observation["global"], step.observation["per_arm"]
        relevance = 2 * np.einsum("bng,bg->bn", items, common)[:, :3]
        reward = bandit.step(np.tile([0, 1, 6], [32, 1])).reward.numpy()
        expected = 1 / (1 + np.exp(-relevance)) * [1.0, 0.5, 0.0]
        rates.append(reward - expected)
        assert not reward[:, 2].any()
    np.testing.assert_allclose(np.mean(rates, axis=(0, 1)), 0, atol=0.08)


@pytest.mark.slow
def test_compiled_it_learns_the_scores():
    bandit = _environment()
    network = bandit_networks.create_feed_forward_common_tower_network(
        bandit.observation_spec(), (8,), (8,), (16, 16), seed=0
    )
    agent = agents.RankingAgent(
        bandit.time_step_spec(),
        bandit.action_spec(),
        network,
        keras.optimizers.Adam(0.01),
        policy_type=ranking_agent.RankingPolicyType.NO_PENALTY,
        logits_temperature=0.2,
        seed=0,
    )
    clicks = []
    loop = train.OnPolicyLoop(
        bandit, agent, collect_steps_per_iteration=2, seed=0, jit_compile=True
    )
    for number in (20, 400):
        loop.run(number)
        values = []
        for _ in range(10):
            step = agent.policy.action(bandit.current_time_step(), seed=len(values))
            values.append(bandit.step(step.action).reward["chosen_value"].numpy())
        clicks.append(np.mean(values))
    assert clicks[1] > clicks[0] + 0.1
