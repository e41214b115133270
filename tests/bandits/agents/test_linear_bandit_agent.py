"""Linear bandits, against NumPy in float64, and the faults that others have."""

import numpy as np
import pytest
import tensorflow as tf

from tests.bandits import bandit_data as data
from tfrl import testing, train
from tfrl.bandits import agents, environments, metrics
from tfrl.bandits.agents import linear_bandit_agent
from tfrl.compilation import replicas
from tfrl.environments import native
from tfrl.trajectories import time_step as ts


def _agent(size=4, num_actions=3, **kwargs):
    kind = kwargs.pop("kind", agents.LinearUCBAgent)
    return kind(data.time_step_spec(size), data.action_spec(num_actions), **kwargs)


def _train(agent, x, action, reward, calls, weights=None):
    """Trains on rows in so many calls, each `[1, T]`."""
    for part in np.array_split(np.arange(len(x)), calls):
        own = None if weights is None else tf.constant(weights[part][np.newaxis])
        agent.train(
            data.experience(x[part][np.newaxis], action[[part]], reward[[part]]), own
        )


def _solved(x, action, reward, num_actions, ridge):
    """Parameters and inverses by NumPy, float64."""
    x = x.astype(np.float64)
    theta, inverse = [], []
    for a in range(num_actions):
        own = x[action == a]
        inverse.append(np.linalg.inv(own.T @ own + ridge * np.eye(x.shape[1])))
        theta.append(inverse[-1] @ own.T @ reward[action == a].astype(np.float64))
    return np.stack(theta), np.stack(inverse)


@pytest.mark.parametrize(
    ("size", "calls", "ridge"), [(4, 500, 1.0), (15, 50, 0.0), (64, 8, 1.0)]
)
def test_parameters_equal_numpy_after_1000_rows(size, calls, ridge):
    x, action, reward = data.rows(1000, size, 3)
    agent = _agent(size, tikhonov_weight=ridge)
    train_step = tf.function(agent.train, autograph=False)
    for part in np.split(np.arange(1000), calls):
        train_step(data.experience(x[[part]], action[[part]], reward[[part]]))
    theta, inverse = _solved(x, action, reward, 3, ridge)
    np.testing.assert_allclose(agent.theta, theta, atol=1e-5)
    np.testing.assert_allclose(agent._variable_collection.inverse, inverse, atol=1e-6)


def test_the_sums_are_those_of_each_arms_rows():
    x, action, reward = data.rows(20, 4, 3)
    agent = _agent()
    _train(agent, x, action, reward, 2)
    for a in range(3):
        own = x[action == a]
        np.testing.assert_allclose(agent.cov_matrix[a], own.T @ own, rtol=1e-5)
        np.testing.assert_allclose(
            agent.data_vector[a], own.T @ reward[action == a], rtol=1e-4, atol=1e-5
        )
        vectors = agent.eig_matrix[a].numpy()
        np.testing.assert_allclose(
            vectors * agent.eig_vals[a] @ vectors.T, own.T @ own, atol=1e-2
        )


@pytest.mark.parametrize(("size", "ridge"), [(1e6, 1.0), (1e3, 0.0)])
def test_large_features_keep_their_parameters_in_small_batches(size, ridge):
    x, action, reward = data.rows(24, 3, 2)
    x *= np.float32([1, size, 1])
    agent = _agent(3, 2, tikhonov_weight=ridge)
    _train(agent, x, action, reward, 24)
    theta, inverse = _solved(x, action, reward, 2, ridge)
    scale = np.array([1, size, 1])
    np.testing.assert_allclose(agent.theta * scale, theta * scale, atol=1e-5)
    scaled = agent._variable_collection.inverse * np.outer(scale, scale)
    np.testing.assert_allclose(scaled, inverse * np.outer(scale, scale), atol=1e-7)


def test_features_of_very_different_sizes_keep_their_parameters():
    x, action, reward = data.rows(1000, 6, 2)
    x *= 10.0 ** np.arange(-3, 3, dtype=np.float32)
    x[:, 1] = x[:, 2] * (1 + np.random.default_rng(1).normal(size=1000) * 1e-3)
    agent = _agent(6, 2, tikhonov_weight=1e-3)
    _train(agent, x, action, reward, 5)
    theta, _ = _solved(x, action, reward, 2, 1e-3)
    np.testing.assert_allclose(agent.theta, theta, rtol=1e-4, atol=1e-4)


def test_inverses_are_computed_from_the_sums_again_after_many_rows():
    x, action, reward = data.rows(1032, 4, 3)
    agent = _agent(4)
    step = tf.function(agent.train, autograph=False)
    for i in range(0, 1032, 8):
        step(
            data.experience(
                x[i : i + 8, None], action[i : i + 8, None], reward[i : i + 8, None]
            )
        )
    assert int(agent._variable_collection._recent) == 8
    theta, inverse = _solved(x, action, reward, 3, 1.0)
    np.testing.assert_allclose(
        agent._variable_collection.inverse, inverse, rtol=1e-9, atol=1e-12
    )
    np.testing.assert_allclose(agent.theta, theta, atol=1e-6)


@pytest.mark.parametrize("gamma", [1.0, 0.9])
def test_the_division_of_rows_into_calls_has_no_effect(gamma):
    x, action, reward = data.rows(60, 4, 3)
    one, many = _agent(gamma=gamma), _agent(gamma=gamma)
    _train(one, x, action, reward, 1)
    _train(many, x, action, reward, 20)
    np.testing.assert_allclose(one.theta, many.theta, atol=1e-6)
    np.testing.assert_allclose(one.num_samples, many.num_samples, rtol=1e-9)


def test_an_arm_forgets_by_its_own_rows_alone():
    agent = _agent(1, 2, gamma=0.5, tikhonov_weight=0.0)
    x = np.ones([4, 1], np.float32)
    _train(agent, x, np.array([0, 0, 1, 1]), np.float32([8, 2, 4, 4]), 4)
    # (0.5 * 8 + 2) / (0.5 + 1) = 4.
    np.testing.assert_allclose(agent.theta[:, 0], [4.0, 4.0], rtol=1e-5)
    np.testing.assert_allclose(agent.num_samples, [1.5, 1.5])


def test_a_weight_of_2_is_the_row_twice():
    x, action, reward = data.rows(9, 4, 3)
    weighted, doubled = _agent(), _agent()
    _train(weighted, x, action, reward, 1, weights=np.full(9, 2.0, np.float32))
    _train(doubled, *(np.repeat(c, 2, axis=0) for c in (x, action, reward)), 1)
    np.testing.assert_allclose(weighted.theta, doubled.theta, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(weighted.num_samples, doubled.num_samples)


def test_without_a_ridge_all_arms_are_tried():
    bandit = native.NativeEnvironment(
        environments.problems.bernoulli([0.1, 0.2, 0.9]), 4, seed=0
    )
    agent = agents.LinearUCBAgent(
        bandit.time_step_spec(), bandit.action_spec(), tikhonov_weight=0.0
    )
    loop = train.OnPolicyLoop(bandit, agent, collect_steps_per_iteration=1, seed=0)
    loop.run(50)
    counts = np.array(agent.num_samples)
    assert (counts > 0).all()
    assert counts.argmax() == 2


def test_a_bias_is_a_feature_that_is_1():
    x, action, reward = data.rows(20, 3, 2)
    biased = _agent(3, 2, add_bias=True)
    plain = _agent(4, 2)
    _train(biased, x, action, reward, 2)
    _train(
        plain, np.concatenate([x, np.ones([20, 1], np.float32)], 1), action, reward, 2
    )
    np.testing.assert_allclose(biased.theta, plain.theta, rtol=1e-6)


def test_arms_with_features_share_a_model():
    rng = np.random.default_rng(0)
    common = rng.normal(size=[5, 2, 2]).astype(np.float32)
    arms = rng.normal(size=[5, 2, 3]).astype(np.float32)
    reward = rng.normal(size=[5, 2]).astype(np.float32)
    agent = agents.LinearUCBAgent(
        data.per_arm_spec(2, 3, 4),
        data.action_spec(4),
        accepts_per_arm_features=True,
    )
    assert "per_arm" not in agent.training_data_spec.observation
    agent.train(
        data.experience({"global": common}, [[3, 1]] * 5, reward, data.chosen(arms))
    )
    x = np.concatenate([common, arms], axis=2).reshape([10, 5])
    theta, _ = _solved(x, np.zeros(10), reward.reshape(10), 1, 1.0)
    np.testing.assert_allclose(agent.theta, theta, atol=1e-6)


def test_boundaries_add_nothing():
    x, action, reward = data.rows(6, 4, 3)
    agent, other = _agent(), _agent()
    frames = data.experience(x[None], action[None], reward[None])
    kinds = tf.constant([[0, 2, 0, 0, 2, 0]])
    following = tf.where(kinds == 2, 0, 2)
    agent.train(frames._replace(step_type=kinds, next_step_type=following))
    keep = [0, 2, 3, 5]
    _train(other, x[keep], action[keep], reward[keep], 1)
    np.testing.assert_allclose(agent.theta, other.theta, rtol=1e-6)
    np.testing.assert_allclose(agent.num_samples, other.num_samples)


def test_the_loss_is_the_squared_error_before_the_update():
    agent = _agent(2, 2)
    x = np.float32([[[1, 0], [0, 1]]])
    info = agent.train(data.experience(x, [[0, 1]], [[3.0, 1.0]]))
    assert float(info.loss) == pytest.approx(5.0)
    # Parameters 3 / 2 and 1 / 2.
    info = agent.loss(data.experience(x, [[0, 1]], [[3.0, 1.0]]))
    assert float(info.loss) == pytest.approx((1.5**2 + 0.5**2) / 2)
    assert int(agent.train_step_counter) == 1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "name"),
    [
        (agents.LinearThompsonSamplingAgent, "PaddedArmsBandit-v0"),
        (agents.LinearUCBAgent, "PaddedArmsBandit-v0"),
        (agents.LinearThompsonSamplingAgent, "LinearBandit-v0"),
    ],
)
def test_a_compiled_loop_learns_as_the_plain_one(kind, name):
    found = []
    for jit_compile in (False, True):
        bandit = environments.load(name, 4, seed=0)
        agent = kind(
            bandit.time_step_spec(),
            bandit.action_spec(),
            accepts_per_arm_features="Arms" in name,
            seed=0,
        )
        regret = metrics.CumulativeRegretMetric(bandit)
        loop = train.OnPolicyLoop(
            bandit,
            agent,
            [regret],
            collect_steps_per_iteration=2,
            seed=0,
            jit_compile=jit_compile,
        )
        loop.run(100)
        found.append((agent.theta.numpy(), float(regret.result())))
        before = float(regret.result())
        loop.run(100)
        assert float(regret.result()) - before < before / 2
    np.testing.assert_allclose(found[0][0], found[1][0], rtol=1e-3, atol=1e-4)
    assert found[0][1] == pytest.approx(found[1][1], rel=1e-3)


def test_a_resumed_loop_continues_bit_for_bit(tmp_path):
    def make():
        bandit = environments.load("PerArmBandit-v0", 3, seed=0)
        agent = agents.LinearThompsonSamplingAgent(
            bandit.time_step_spec(),
            bandit.action_spec(),
            accepts_per_arm_features=True,
            seed=0,
        )
        return train.OnPolicyLoop(bandit, agent, collect_steps_per_iteration=2, seed=0)

    first, second = make(), make()
    first.run(8)
    path = tf.train.Checkpoint(**first.checkpoint_items()).write(str(tmp_path / "c"))
    first.run(12)
    second.run(3)
    tf.train.Checkpoint(**second.checkpoint_items()).read(path).assert_consumed()
    second.run(12)
    for x, y in zip(first.agent.variables(), second.agent.variables(), strict=True):
        np.testing.assert_array_equal(x.numpy(), y.numpy())


def test_a_replica_learns_the_rows_of_all_replicas(monkeypatch):
    x, action, reward = data.rows(8, 4, 3)
    weights = np.linspace(0.5, 2, 8, dtype=np.float32)

    def frames(part):
        return data.experience(x[part, None], action[part, None], reward[part, None])

    alone, agent = _agent(gamma=0.9), _agent(gamma=0.9)
    alone.train(frames(slice(8)), tf.constant(weights))
    others = agent._rows(frames(slice(4, 8)), tf.constant(weights[4:]))

    def gathered(nest):
        return tf.nest.map_structure(lambda *x: tf.concat(x, 0), nest, others)

    monkeypatch.setattr(replicas, "gathered", gathered)
    agent.train(frames(slice(4)), tf.constant(weights[:4]))
    np.testing.assert_allclose(agent.theta, alone.theta, rtol=1e-6)
    np.testing.assert_allclose(agent.num_samples, alone.num_samples, rtol=1e-6)


@pytest.mark.slow
def test_runs_of_a_sweep_learn_apart_in_one_program():
    def make(seed):
        bandit = environments.load("LinearBandit-v0", 4, seed=seed)
        agent = agents.LinearUCBAgent(bandit.time_step_spec(), bandit.action_spec())
        return train.OnPolicyLoop(
            bandit, agent, collect_steps_per_iteration=2, seed=seed
        )

    result = train.sweep(
        make, [0, 1], num_iterations=600, eval_interval=600, num_eval_episodes=4
    )
    assert result.returns.shape[:2] == (2, 1)
    alone = make(1)
    alone.run(600)
    expected = alone.agent.theta
    np.testing.assert_allclose(result.restore(1).agent.theta, expected, atol=1e-4)


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        ({"gamma": 1.5}, ValueError, "gamma"),
        ({"tikhonov_weight": -1.0}, ValueError, "tikhonov_weight"),
        ({"alpha": -1.0}, ValueError, "alpha"),
        ({"dtype": tf.int32}, ValueError, "dtype"),
        ({"variable_collection": 3}, TypeError, "variable_collection"),
        (
            {"variable_collection": agents.LinearBanditVariableCollection(5, 3)},
            ValueError,
            r"cov_matrix: got shape \(3, 5, 5\), expected \[3, 4, 4\]",
        ),
    ],
)
def test_wrong_arguments_are_named(arguments, error, text):
    with pytest.raises(error, match=text):
        _agent(**arguments)


def test_an_image_is_refused():
    with pytest.raises(ValueError, match="flatten the observation"):
        agents.LinearUCBAgent(
            ts.time_step_spec(tf.TensorSpec([8, 8, 3], tf.float32)), data.action_spec(2)
        )


class TestConformance(testing.AgentConformance):
    def make_agent(self):
        return _agent(seed=0)


def test_the_sums_of_one_batch():
    x, _, reward = data.rows(6, 4, 1)
    sums = linear_bandit_agent.update_a_and_b_with_forgetting(
        tf.eye(4), tf.ones([4]), tf.constant(reward), tf.constant(x), 0.5
    )
    np.testing.assert_allclose(sums[0], 0.5 * np.eye(4) + x.T @ x, rtol=1e-5)
    np.testing.assert_allclose(sums[1], 0.5 + reward @ x, rtol=1e-5)
