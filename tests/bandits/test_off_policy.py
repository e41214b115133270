"""The value of a policy from the log of another one: exact, without bias, covered."""

import numpy as np
import pytest
import tensorflow as tf

from tests.bandits import bandit_data as data
from tfrl.bandits import agents, off_policy
from tfrl.eval import statistics
from tfrl.trajectories import time_step as ts

# Two contexts, three arms: rewards, the log's and the evaluated policy's probabilities.
REWARD = np.array([[1.0, 3.0, -2.0], [0.0, 5.0, 4.0]])
LOGGED = np.array([[0.5, 0.25, 0.25], [0.2, 0.4, 0.4]])
POLICY = np.array([[0.1, 0.6, 0.3], [0.0, 0.5, 0.5]])
VALUE = np.mean(np.sum(POLICY * REWARD, axis=1))


def expected_log():
    """A log of 40 rounds in which each arm is as frequent as it should be."""
    counts = np.int64(20 * LOGGED)
    context, action = (
        np.repeat(x, counts.ravel()) for x in np.indices([2, 3]).reshape(2, 6)
    )
    log = off_policy.LoggedData(
        np.float32(np.eye(2))[context],
        action,
        REWARD[context, action],
        LOGGED[context, action],
    )
    return log, POLICY[context], REWARD[context]


def test_a_log_as_it_is_expected_has_the_exact_value():
    log, probabilities, rewards = expected_log()
    found = off_policy.evaluate(probabilities, log, rewards=rewards + 7.0)
    for each in (found.ips, found.snips, found.doubly_robust):
        np.testing.assert_allclose(each.value, VALUE, rtol=1e-12)
    np.testing.assert_allclose(found.logged.value, np.mean(log.reward))
    weight = (probabilities / LOGGED[np.argmax(log.observation, 1)])[
        np.arange(40), log.action
    ]
    np.testing.assert_allclose(
        found.effective_sample_size, weight.sum() ** 2 / (weight**2).sum()
    )
    assert f"ips: {VALUE:.4f} (" in str(found)


def test_exact_predictions_leave_the_doubly_robust_estimate_no_variance():
    log, probabilities, rewards = expected_log()
    first = log.rows(slice(20))
    found = off_policy.evaluate(probabilities[:20], first, rewards[:20])
    exact = np.sum(POLICY[0] * REWARD[0])
    np.testing.assert_allclose(found.doubly_robust.interval, [exact, exact], atol=1e-9)
    low, high = found.ips.interval
    assert high - low > 1


def test_the_intervals_are_those_of_the_mean_and_of_the_ratio():
    log, probabilities, _ = expected_log()
    weight = probabilities[np.arange(40), log.action] / log.propensity
    found = off_policy.evaluate(probabilities, log)
    assert found.ips.interval == statistics.mean_interval(weight * log.reward)
    # The delta method: the variance of w (r - v) over N and the squared mean weight.
    value = np.sum(weight * log.reward) / np.sum(weight)
    residuals = weight * (log.reward - value) / np.mean(weight)
    deviation = np.std(residuals, ddof=1) / np.sqrt(40)
    low, high = found.snips.interval
    np.testing.assert_allclose((high - low) / 2, 2.0227 * deviation, rtol=1e-4)


def test_weights_can_be_cut():
    log, probabilities, _ = expected_log()
    weight = np.minimum(probabilities[np.arange(40), log.action] / log.propensity, 1.2)
    found = off_policy.evaluate(probabilities, log, max_weight=1.2)
    np.testing.assert_allclose(found.ips.value, np.mean(weight * log.reward))


def simulated(num_rows, seed, theta):
    """Rounds of linear rewards, logged by a softmax; the exact rewards of all arms."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=[num_rows, theta.shape[1]])
    rewards = x @ theta.T
    logits = 0.5 * rewards
    probabilities = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
    action = (probabilities.cumsum(1) < rng.random([num_rows, 1])).sum(1)
    rows = np.arange(num_rows)
    log = off_policy.LoggedData(
        x,
        action,
        rewards[rows, action] + rng.normal(size=num_rows),
        probabilities[rows, action],
    )
    return log, rewards


def test_a_log_of_100_000_rows_shows_what_a_policy_earns():
    theta = np.random.default_rng(0).normal(size=[4, 6])
    log, rewards = simulated(100_000, 1, theta)
    best = np.eye(4)[np.argmax(rewards, axis=1)]
    value = np.mean(np.max(rewards, axis=1))
    found = off_policy.evaluate(best, log)
    for each in (found.ips, found.snips, found.doubly_robust):
        low, high = each.interval
        # The intervals are of all contexts, the value is of these: both are near.
        np.testing.assert_allclose(each.value, value, atol=0.06)
        assert low < value < high
    widths = [np.ptp(each.interval) for each in (found.ips, found.doubly_robust)]
    assert widths[1] < 0.8 * widths[0]


def test_nineteen_of_twenty_intervals_hold_the_value():
    """Of 400 logs of 200 rounds; three deviations of the number of hits are 13."""
    rng = np.random.default_rng(2)
    context = rng.integers(2, size=[400, 200])
    uniform = rng.random([400, 200, 1])
    action = (LOGGED[context].cumsum(-1) < uniform).sum(-1)
    reward = REWARD[context, action] + rng.normal(size=context.shape)
    weight = POLICY[context, action] / LOGGED[context, action]
    q = 0.5 * REWARD
    terms = {
        "ips": off_policy.ips,
        "snips": off_policy.snips,
        "doubly_robust": lambda w, r, i: off_policy.doubly_robust(
            w, r, q[context[i], action[i]], np.sum(POLICY * q, axis=1)[context[i]]
        ),
    }
    for name, of in terms.items():
        hits = 0
        for i in range(400):
            extra = [i] if name == "doubly_robust" else []
            each = of(weight[i], reward[i], *extra)
            reach = 1.972 * np.std(each, ddof=1) / np.sqrt(200)
            hits += abs(np.mean(each) - VALUE) < reach
        assert 380 - 14 <= hits <= 380 + 14, name


def test_models_of_other_rounds_predict_linear_rewards():
    theta = np.random.default_rng(0).normal(size=[3, 4])
    log, rewards = simulated(3000, 3, theta)
    predicted = off_policy.fitted_rewards(log, 3)
    np.testing.assert_allclose(predicted, rewards, atol=0.6)
    changed = np.array(log.reward)
    changed[0] += 1e6
    again = off_policy.fitted_rewards(log._replace(reward=changed), 3)
    np.testing.assert_array_equal(again[0], predicted[0])
    assert np.any(again[1] != predicted[1])


def test_features_of_arms_have_one_model():
    rng = np.random.default_rng(0)
    arms = rng.normal(size=[500, 3, 2])
    rewards = arms @ [1.0, -2.0]
    action = rng.integers(3, size=500)
    observation = {"global": rng.normal(size=[500, 1]), "per_arm": arms}
    log = off_policy.LoggedData(
        observation, action, rewards[np.arange(500), action], np.full(500, 1 / 3)
    )
    np.testing.assert_allclose(off_policy.fitted_rewards(log, 3), rewards, atol=0.1)


def test_the_probabilities_are_those_of_the_policy():
    agent = agents.LinearUCBAgent(data.time_step_spec(2), data.action_spec(3))
    log, _, _ = expected_log()
    first = agent.policy.action(ts.restart(tf.constant(log.observation), 40)).action
    found = off_policy.probabilities_of(agent.policy, log.observation)
    np.testing.assert_allclose(found, np.eye(3)[first], atol=1e-6)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"propensity": np.zeros(40)}, "propensity: got numbers from 0.0 to 0.0"),
        ({"propensity": np.full(40, 1.5)}, "propensity: got numbers from 1.5"),
        ({"reward": np.full(40, np.nan)}, "finite rewards"),
        ({"action": np.full(40, -1)}, "arms from 0"),
        ({"action": np.full(40, 7)}, "^log: got the arm 7, expected arms below 3"),
        ({"reward": np.zeros(39)}, "one row a round"),
    ],
)
def test_a_wrong_log_is_refused(changes, message):
    log, probabilities, _ = expected_log()
    with pytest.raises(ValueError, match=message):
        off_policy.evaluate(probabilities, log._replace(**changes))


def test_numbers_that_are_not_finite_are_refused_and_not_averaged():
    log, probabilities, rewards = expected_log()
    rewards[3, 1] = np.nan
    with pytest.raises(ValueError, match=r"^rewards: got 1 predictions that are not f"):
        off_policy.evaluate(probabilities, log, rewards=rewards)
    context = log.observation.copy()
    context[0] = np.inf
    with pytest.raises(ValueError, match=r"finite ones; mend the models, or the cont"):
        off_policy.evaluate(probabilities, log._replace(observation=context))
    with pytest.raises(
        ValueError, match="max_weight: expected a finite number above 0, got"
    ):
        off_policy.evaluate(probabilities, log, max_weight=np.nan)


def test_what_are_no_probabilities_and_too_few_rounds_are_refused():
    log, probabilities, _ = expected_log()
    for wrong in (probabilities * 2, probabilities - 1 / 3):
        with pytest.raises(ValueError, match=r"^policy: got numbers from .* sums from"):
            off_policy.evaluate(wrong, log)
    with pytest.raises(ValueError, match=r"^log: got 1 rounds, expected at least 2"):
        off_policy.evaluate(probabilities[:1], log.rows(slice(1)))


def test_what_the_log_says_nothing_about_is_an_error():
    log, probabilities, _ = expected_log()
    with pytest.raises(ValueError, match="takes none of the log's actions"):
        off_policy.evaluate(np.eye(3)[(log.action + 1) % 3], log)
    with pytest.raises(ValueError, match="one of each arm in each round"):
        off_policy.evaluate(probabilities[:10], log)


def test_an_agent_learns_from_a_table_what_it_learns_from_frames():
    x, action, reward = data.rows(10, 3, 4)
    log = off_policy.LoggedData(x, action, reward, np.full(10, 0.25))
    agent, other = (
        agents.LinearUCBAgent(data.time_step_spec(3), data.action_spec(4))
        for _ in range(2)
    )
    sizes = []
    for frames in log.as_dataset(agent, batch_size=4):
        sizes.append(frames.action.shape[0])
        agent.train(frames)
    assert sizes == [4, 4, 2]
    other.train(data.experience(x[:, None], action[:, None], reward[:, None]))
    np.testing.assert_allclose(agent.theta, other.theta, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("first", [1, 0.5, -1])
def test_arms_that_there_are_not_are_refused_where_they_enter(first):
    x, action, reward = data.rows(10, 3, 4)
    wrong = np.where(np.arange(10) == 9, 3, action) + first
    agent = agents.LinearUCBAgent(data.time_step_spec(3), data.action_spec(4))
    with pytest.raises(ValueError, match=r"^(reward, )?action: .*from 0"):
        off_policy.LoggedData(x, wrong, reward, np.full(10, 0.25)).as_dataset(agent, 4)
    if first != 0.5:
        frames = data.experience(x[:, None], wrong[:, None], reward[:, None])
        with pytest.raises(
            ValueError, match=r"^experience\.action: got .* 0 to 3, each"
        ):
            agent.train(frames)


def test_the_info_has_the_propensity_and_the_features_of_the_chosen_arm():
    rng = np.random.default_rng(0)
    spec = data.per_arm_spec(2, 3, 4, has_number=True)
    agent = agents.LinearThompsonSamplingAgent(
        spec,
        data.action_spec(4),
        accepts_per_arm_features=True,
        emit_log_probability=True,
        emit_policy_info=("predicted_rewards_mean",),
    )
    arms = rng.normal(size=[6, 4, 3])
    observation = {
        "global": rng.normal(size=[6, 2]),
        "per_arm": arms,
        "num_actions": np.full(6, 4),
    }
    action = rng.integers(4, size=6)
    propensity = rng.uniform(0.1, 1.0, 6)
    log = off_policy.LoggedData(observation, action, np.ones(6), propensity)
    (frames,) = log.as_dataset(agent, batch_size=6)
    info = frames.policy_info
    np.testing.assert_allclose(
        info.log_probability[:, 0], np.log(propensity), rtol=1e-6
    )
    np.testing.assert_array_equal(
        info.chosen_arm_features[:, 0], np.float32(arms[np.arange(6), action])
    )
    np.testing.assert_array_equal(info.predicted_rewards_mean, np.zeros([6, 1, 4]))
    assert "per_arm" not in frames.observation
    assert frames.is_first().numpy().all()
    assert frames.is_last().numpy().all()
    before = np.array(agent.theta)
    agent.train(frames)
    assert np.any(agent.theta != before)


def test_rows_choose_rounds():
    x, action, reward = data.rows(10, 3, 4)
    log = off_policy.LoggedData({"a": x}, action, reward, np.full(10, 0.25))
    half = log.rows(np.arange(10) % 2 == 0)
    np.testing.assert_array_equal(half.observation["a"], x[::2])
    np.testing.assert_array_equal(half.action, action[::2])
    assert tf.nest.flatten(half)[0].shape == (5, 3)
