"""Policies of linear models: what they choose, with which probability, and masks."""

import numpy as np
import pytest
import tensorflow as tf

from tests.bandits import bandit_data as data
from tfrl.bandits import agents, policies
from tfrl.bandits.policies import largest
from tfrl.policies import PolicySaver
from tfrl.policies.utils import BanditPolicyType
from tfrl.specs import tensor_spec
from tfrl.trajectories import time_step as ts


def _trained(kind=agents.LinearUCBAgent, num_actions=3, **kwargs):
    agent = kind(data.time_step_spec(4), data.action_spec(num_actions), **kwargs)
    x, action, reward = data.rows(40, 4, num_actions)
    info = data.zeros(agent.training_data_spec.policy_info, [1, 40])
    agent.train(data.experience(x[None], action[None], reward[None], info))
    return agent


def _observed(*observation):
    observation = tf.nest.map_structure(tf.constant, *observation)
    size = tf.nest.flatten(observation)[0].shape[0]
    return ts.restart(observation, batch_size=size)


X = np.random.default_rng(5).normal(size=[6, 4]).astype(np.float32)


def _bounds(agent, x, alpha):
    inverse = agent._variable_collection.inverse.numpy()
    mean = x @ agent._variable_collection.theta.numpy().T
    return mean, alpha * np.sqrt(np.einsum("bi,mij,bj->bm", x, inverse, x))


def test_lin_ucb_chooses_the_largest_upper_bound():
    agent = _trained(
        alpha=0.7,
        emit_policy_info=("predicted_rewards_mean", "predicted_rewards_optimistic"),
    )
    step = agent.policy.action(_observed(X))
    mean, deviation = _bounds(agent, X, 0.7)
    np.testing.assert_array_equal(step.action, (mean + deviation).argmax(1))
    np.testing.assert_allclose(step.info.predicted_rewards_mean, mean, rtol=1e-5)
    np.testing.assert_allclose(
        step.info.predicted_rewards_optimistic, mean + deviation, rtol=1e-5
    )
    assert step.info.predicted_rewards_sampled == ()


@pytest.mark.parametrize(
    "kind", [agents.LinearUCBAgent, agents.LinearThompsonSamplingAgent]
)
def test_a_greedy_policy_tells_of_the_arm_that_it_takes(kind):
    agent = kind(
        data.per_arm_spec(2, 3, 4, has_number=True),
        data.action_spec(4),
        accepts_per_arm_features=True,
        emit_policy_info=("predicted_rewards_mean", "bandit_policy_type"),
        emit_log_probability=True,
    )
    collection = agent._variable_collection
    collection.theta.assign([[0.0, 0.0, 1.0, -2.0, 0.5]])
    agent.act_greedily()
    arms = np.random.default_rng(0).normal(size=[3, 4, 3]).astype(np.float32)
    observation = {
        "global": np.ones([3, 2], np.float32),
        "per_arm": arms,
        "num_actions": np.int32([4, 2, 0]),
    }
    action, _, info = agent.policy.action(_observed(observation))
    chosen = arms[range(3), np.maximum(action, 0)]
    np.testing.assert_array_equal(info.chosen_arm_features, chosen)
    np.testing.assert_allclose(
        info.predicted_rewards_mean, arms @ [1.0, -2.0, 0.5], rtol=1e-5
    )
    np.testing.assert_array_equal(info.bandit_policy_type, [[1], [1], [1]])
    assert action.numpy().tolist()[2] == -1
    assert action.numpy()[1] < 2


def test_a_row_has_the_same_action_in_any_batch_and_order():
    agent = _trained()
    together = agent.policy.action(_observed(X)).action.numpy()
    alone = [
        int(agent.policy.action(_observed(X[i : i + 1])).action[0]) for i in range(6)
    ]
    np.testing.assert_array_equal(together, alone)
    reverse = agent.policy.action(_observed(X[::-1].copy())).action.numpy()
    np.testing.assert_array_equal(together[::-1], reverse)


def test_thompson_draws_by_the_seed_that_it_is_given():
    agent = _trained(agents.LinearThompsonSamplingAgent, alpha=2.0)
    many = np.repeat(X[:1], 200, axis=0)
    first, again, other = (
        agent.policy.action(_observed(many), seed=s).action.numpy() for s in (1, 1, 2)
    )
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()
    assert len(set(first)) > 1


def test_thompsons_probabilities_are_those_of_its_actions():
    agent = _trained(agents.LinearThompsonSamplingAgent, alpha=1.5)
    many = np.repeat(X[:1], 40_000, axis=0)
    action = agent.policy.action(_observed(many), seed=3).action.numpy()
    exact = agent.policy.distribution(_observed(X[:1])).action.probs_parameter()[0]
    found = np.bincount(action, minlength=3) / len(action)
    np.testing.assert_allclose(found, exact, atol=0.01)


def test_the_info_has_the_log_probability_of_the_action():
    agent = _trained(agents.LinearThompsonSamplingAgent, emit_log_probability=True)
    step = agent.policy.action(_observed(X), seed=3)
    exact = agent.policy.distribution(_observed(X)).action.probs_parameter().numpy()
    np.testing.assert_allclose(
        np.exp(step.info.log_probability), exact[np.arange(6), step.action], rtol=1e-4
    )


def test_the_probability_of_the_larger_of_two_normal_numbers():
    mean, deviation = np.array([[0.3, -0.2]]), np.array([[0.5, 1.2]])
    logs = largest.of_normal(
        tf.constant(mean), tf.constant(deviation), tf.constant([[True, True]])
    )
    # Phi(0.5 / 1.3).
    np.testing.assert_allclose(np.exp(logs), [[0.649742, 0.350258]], atol=1e-5)
    logs = largest.of_normal(
        tf.constant(mean), tf.constant(deviation), tf.constant([[False, True]])
    )
    np.testing.assert_allclose(np.exp(logs), [[0.0, 1.0]])


def test_lin_ucb_is_certain_of_its_action():
    agent = _trained(emit_log_probability=True)
    step = agent.policy.action(_observed(X))
    np.testing.assert_array_equal(step.info.log_probability, 0.0)
    probabilities = agent.policy.distribution(_observed(X)).action.probs_parameter()
    np.testing.assert_allclose(np.sum(probabilities, axis=1), 1.0)
    np.testing.assert_array_equal(np.argmax(probabilities, axis=1), step.action)


def _masked_spec(num_actions, observation_spec):
    mask = tensor_spec.BoundedTensorSpec([num_actions], tf.int32, 0, 1)
    return ts.time_step_spec((observation_spec, mask))


@pytest.mark.parametrize(
    "kind", [agents.LinearUCBAgent, agents.LinearThompsonSamplingAgent]
)
def test_forbidden_arms_are_never_chosen(kind):
    agent = kind(
        _masked_spec(3, tf.TensorSpec([4], tf.float32)),
        data.action_spec(3),
        observation_and_action_constraint_splitter=lambda o: (o[0], o[1]),
    )
    mask = np.array([[0, 1, 0], [1, 0, 1], [0, 0, 1]] * 2, np.int32)
    for seed in range(5):
        action = agent.policy.action(_observed((X, mask)), seed=seed).action.numpy()
        assert (mask[np.arange(6), action] == 1).all()


def test_a_row_without_an_allowed_arm_has_the_action_minus_1():
    agent = agents.LinearUCBAgent(
        _masked_spec(3, tf.TensorSpec([4], tf.float32)),
        data.action_spec(3),
        observation_and_action_constraint_splitter=lambda o: (o[0], o[1]),
    )
    step = agent.policy.action(_observed((X[:2], np.int32([[0, 0, 0], [0, 1, 0]]))))
    np.testing.assert_array_equal(step.action, [-1, 1])


def _per_arm_agent(kind, **kwargs):
    spec = data.per_arm_spec(2, 3, 4, has_number=True).observation
    return kind(
        _masked_spec(4, spec),
        data.action_spec(4),
        accepts_per_arm_features=True,
        observation_and_action_constraint_splitter=lambda o: (o[0], o[1]),
        **kwargs,
    )


@pytest.mark.parametrize(
    "kind", [agents.LinearUCBAgent, agents.LinearThompsonSamplingAgent]
)
def test_a_mask_and_a_number_of_arms_work_together_with_features_of_arms(kind):
    agent = _per_arm_agent(kind, emit_log_probability=True)
    rng = np.random.default_rng(0)
    arms = rng.normal(size=[50, 4, 3]).astype(np.float32)
    number = rng.integers(2, 5, size=50).astype(np.int32)
    mask = np.tile(np.array([0, 1, 1, 1], np.int32), [50, 1])
    context = {
        "global": rng.normal(size=[50, 2]).astype(np.float32),
        "per_arm": arms,
        "num_actions": number,
    }
    step = agent.policy.action(_observed((context, mask)), seed=0)
    action = step.action.numpy()
    assert (action >= 1).all()
    assert (action < number).all()
    np.testing.assert_array_equal(
        step.info.chosen_arm_features, arms[np.arange(50), action]
    )
    assert np.isfinite(step.info.log_probability).all()
    assert (step.info.log_probability.numpy() <= 0).all()


def test_the_info_says_how_an_action_was_chosen():
    agent = _trained(emit_policy_info=("bandit_policy_type",))
    step = agent.policy.action(_observed(X))
    expected = np.full([6, 1], BanditPolicyType.GREEDY)
    np.testing.assert_array_equal(step.info.bandit_policy_type, expected)


def test_alpha_may_be_a_variable():
    alpha = tf.Variable(0.0)
    agent = _trained(alpha=alpha)
    mean, deviation = _bounds(agent, X, 50.0)
    np.testing.assert_array_equal(
        agent.policy.action(_observed(X)).action, mean.argmax(1)
    )
    alpha.assign(50.0)
    np.testing.assert_array_equal(
        agent.policy.action(_observed(X)).action, (mean + deviation).argmax(1)
    )


def test_a_saved_policy_acts_as_before(tmp_path):
    agent = _trained()
    PolicySaver(agent.policy).save(str(tmp_path))
    loaded = tf.saved_model.load(str(tmp_path))
    step = agent.policy.action(_observed(X))
    np.testing.assert_array_equal(loaded.action(_observed(X), ()).action, step.action)


def test_a_saved_policy_with_features_of_arms_serves_them_by_name(tmp_path):
    agent = agents.LinearUCBAgent(
        data.per_arm_spec(2, 3, 4), data.action_spec(4), accepts_per_arm_features=True
    )
    PolicySaver(agent.policy).save(str(tmp_path))
    serve = tf.saved_model.load(str(tmp_path)).signatures["serving_default"]
    context = {"global": np.ones([1, 2], np.float32)}
    context["per_arm"] = np.zeros([1, 4, 3], np.float32)
    context["per_arm"][0, 2] = 5.0
    named = {"global_": context["global"], "per_arm": context["per_arm"]}
    served = serve(**{name: tf.constant(x) for name, x in named.items()})
    np.testing.assert_array_equal(served["action"], [2])


@pytest.mark.parametrize(
    "kind", [agents.LinearUCBAgent, agents.LinearThompsonSamplingAgent]
)
def test_a_policy_of_sums_chooses_as_the_agents_own(kind):
    agent = _trained(kind, alpha=0.5, tikhonov_weight=2.0, dtype=tf.float64)
    made = {
        agents.LinearUCBAgent: policies.LinearUCBPolicy,
        agents.LinearThompsonSamplingAgent: policies.LinearThompsonSamplingPolicy,
    }[kind](
        agent.action_spec,
        [tf.Variable(a) for a in agent.cov_matrix],
        [tf.Variable(b) for b in agent.data_vector],
        agent.num_samples,
        agent.time_step_spec,
        0.5,
        tikhonov_weight=2.0,
    )
    assert len(made.variables()) == 6
    found, expected = (
        policy.action(_observed(X), seed=4).action for policy in (made, agent.policy)
    )
    np.testing.assert_array_equal(found, expected)
    for sums in made.variables():
        sums.assign(tf.zeros_like(sums))
    assert not np.any(made.action(_observed(0 * X), seed=4).action)


def test_models_of_another_number_are_refused():
    agent = _trained()
    with pytest.raises(
        ValueError, match=r"cov_matrix: got shape \(2, 4, 4\), expected"
    ):
        policies.LinearUCBPolicy(
            agent.action_spec,
            agent.cov_matrix[:2],
            agent.data_vector,
            agent.num_samples,
            agent.time_step_spec,
        )


def test_alpha_can_be_updated_if_it_is_a_variable():
    agent = _trained(alpha=tf.Variable(1.0))
    agent.update_alpha(3.0)
    assert float(agent.alpha) == 3.0
    with pytest.raises(TypeError, match=r"alpha: got the fixed number 1\.0"):
        _trained().update_alpha(3.0)


def test_a_time_step_without_a_batch_is_refused():
    step = ts.restart(tf.zeros([4]))
    with pytest.raises(ValueError, match="time_step: got one without a batch"):
        _trained().policy.action(step)


@pytest.mark.parametrize(
    "kind", [policies.LinearUCBPolicy, policies.LinearThompsonSamplingPolicy]
)
def test_a_policy_of_sums_has_them_and_the_counts_among_its_variables(kind):
    sums = [
        [tf.Variable(tf.eye(4)) for _ in range(2)],
        [tf.Variable(tf.ones([4])) for _ in range(2)],
        [tf.Variable(3.0) for _ in range(2)],
    ]
    policy = kind(data.action_spec(2), *sums, data.time_step_spec(4))
    assert {v.ref() for v in policy.variables()} == {
        v.ref() for each in sums for v in each
    }
