"""TF-Agents' bandits in Python and its wrappers: rewards by hand, and seeds."""

import itertools

import numpy as np
import pytest
import tensorflow as tf
import tensorflow_probability as tfp

from tfrl.bandits import environments
from tfrl.bandits.environments import dataset_utilities, problems, wheel_py_environment
from tfrl.environments import TFPyEnvironment, native
from tfrl.specs import tensor_spec

WHEEL = 0.5, [1.2, 1.0, 1.0, 1.0, 1.0], [0.0] * 5, 50.0, 0.0


def test_the_wheel_in_python_pays_the_best_arm():
    bandit = environments.WheelPyEnvironment(*WHEEL, batch_size=64, seed=0)
    observation = bandit.reset().observation
    best = wheel_py_environment.compute_optimal_action(observation, 0.5)
    assert set(best) == {0, 1, 2, 3, 4}
    reward = bandit.step(best).reward
    expected = wheel_py_environment.compute_optimal_reward(observation, 0.5, 1.2, 50.0)
    np.testing.assert_allclose(reward, expected, rtol=1e-5)
    np.testing.assert_array_equal(bandit.compute_optimal_action(), best)
    np.testing.assert_allclose(bandit.compute_optimal_reward(), expected)


def test_a_coordinate_of_0_has_a_best_arm():
    found = wheel_py_environment.compute_optimal_action([[0.0, 0.9], [-0.9, 0.0]], 0.5)
    np.testing.assert_array_equal(found, [1, 3])


def test_bernoulli_rewards_have_their_means_and_a_seed():
    bandits = [
        environments.BernoulliPyEnvironment([0.2, 0.7], 500, seed=3) for _ in range(2)
    ]
    first, again = (
        bandit.reset() and bandit.step(np.ones(500, int)) for bandit in bandits
    )
    assert first.reward.mean() == pytest.approx(0.7, abs=0.07)
    np.testing.assert_array_equal(first.reward, again.reward)
    np.testing.assert_array_equal(first.observation, np.ones(500, np.float32))
    assert bandits[0].observation_spec().shape == ()


def test_pieces_have_their_durations_and_means():
    bandit = environments.PiecewiseBernoulliPyEnvironment(
        [[0.0, 1.0], [0.5, 0.5], [1.0, 0.0]], itertools.cycle([2, 0, 1]), 3, seed=0
    )
    bandit.reset()
    rewards = [bandit.step(np.zeros(3, int)).reward.tolist() for _ in range(6)]
    # The second piece has no steps.
    assert rewards == [[0.0] * 3, [0.0] * 3, [1.0] * 3] * 2
    with pytest.raises(ValueError, match=r"floats in \[0, 1\]"):
        environments.PiecewiseBernoulliPyEnvironment([[1.5]], iter([1]))
    with pytest.raises(ValueError, match="must be non-negative"):
        environments.PiecewiseBernoulliPyEnvironment([[0.5]], iter([-1]))


def test_functions_draw_contexts_rewards_and_constraints():
    contexts = iter(np.arange(20, dtype=np.float32).reshape([-1, 2, 1]))
    bandit = environments.StationaryStochasticPyEnvironment(
        lambda: next(contexts),
        [lambda x: x[0], lambda x: 10 * x[0]],
        [lambda x: [x[0] + 1, 5.0], lambda x: [x[0] + 2, 6.0]],
        batch_size=2,
    )
    assert TFPyEnvironment(bandit).is_bandit
    observation = bandit.reset().observation
    reward = bandit.step(np.array([0, 1])).reward
    first, second = observation[:, 0]
    np.testing.assert_allclose(reward["reward"], [first, 10 * second])
    np.testing.assert_allclose(reward["constraint"], [[first + 1, 5], [second + 2, 6]])
    with pytest.raises(ValueError, match="the number of actions must match the batch"):
        bandit.step(np.array([0, 1, 1]))


def test_functions_draw_features_of_arms():
    rng = np.random.default_rng(0)
    bandit = environments.StationaryStochasticPerArmPyEnvironment(
        lambda: rng.normal(size=2),
        lambda: rng.normal(size=3),
        4,
        lambda x: x.sum(),
        lambda: rng.integers(0, 9),
        batch_size=5,
    )
    observation = bandit.reset().observation
    assert observation["per_arm"].shape == (5, 4, 3)
    assert (observation["num_actions"] >= 1).all()
    assert (observation["num_actions"] <= 4).all()
    expected = observation["global"].sum(1) + observation["per_arm"][:, 2].sum(1)
    reward = bandit.step(np.full(5, 2)).reward
    np.testing.assert_allclose(reward, expected, rtol=1e-5)


def test_functions_draw_nests_of_features():
    rng = np.random.default_rng(0)
    bandit = environments.StationaryStochasticStructuredPyEnvironment(
        lambda: {"a": rng.normal(size=2), "b": rng.normal(size=1)},
        lambda: {"c": rng.normal(size=3)},
        4,
        lambda of_all, arm: of_all["b"][0] + arm["c"][1],
        batch_size=2,
    )
    observation = bandit.reset().observation
    expected = observation["global"]["b"][:, 0] + observation["per_arm"]["c"][:, 3, 1]
    np.testing.assert_allclose(bandit.step(np.full(2, 3)).reward, expected, rtol=1e-5)


RATINGS = np.random.default_rng(0).integers(0, 6, size=[12, 8]).astype(np.float64)


def _file(folder):
    rows = [
        f"{user + 1},{movie + 1},{RATINGS[user, movie]},0"
        for user in range(12)
        for movie in range(8)
    ]
    path = folder / "ratings.csv"
    path.write_text("\n".join(rows))
    return path


def test_movielens_rewards_are_ratings_of_low_rank(tmp_path):
    path = _file(tmp_path)
    np.testing.assert_array_equal(dataset_utilities.load_movielens_data(path), RATINGS)
    # At full rank the ratings themselves.
    bandit = environments.MovieLensPyEnvironment(path, 8, 40, num_movies=8, seed=0)
    bandit.reset()
    reward = bandit.step(np.full(40, 3)).reward
    assert set(np.round(reward, 3)) <= set(RATINGS[:, 3])
    assert (bandit.compute_optimal_reward() >= reward - 1e-4).all()


def test_movielens_with_features_of_movies(tmp_path):
    bandit = environments.MovieLensPerArmPyEnvironment(
        _file(tmp_path), 3, 6, num_actions=4, seed=0
    )
    observation = bandit.reset().observation
    _, s, vh = np.linalg.svd(RATINGS, full_matrices=False)
    users, movies = observation["global"], observation["per_arm"][:, 1]
    reward = bandit.step(np.ones(6, int)).reward
    np.testing.assert_allclose(reward, (users * s[:3] * movies).sum(1), rtol=1e-4)
    state = native.NativeEnvironment(
        problems.movielens_per_arm(RATINGS, 3, 8), 1, seed=0
    ).reset()
    # All movies, each once.
    found = state.observation["per_arm"].numpy()[0]
    order = [np.lexsort(each.T) for each in (found, vh[:3].T)]
    np.testing.assert_allclose(found[order[0]], vh[:3].T[order[1]], atol=1e-5)


def _masked(probability):
    distributions = [
        tfp.distributions.MultivariateNormalDiag(tf.zeros([8, 2]), tf.ones([8, 2])),
        tfp.distributions.Normal(tf.zeros(8), tf.ones(8)),
    ]
    bandit = environments.RandomBanditEnvironment(
        *distributions, tensor_spec.BoundedTensorSpec([], tf.int32, 0, 3), seed=0
    )
    return environments.BernoulliActionMaskTFEnvironment(
        bandit, lambda x, mask: (x, mask), probability, seed=1
    )


def test_masks_have_at_least_one_arm():
    _, mask = _masked(0.0).reset().observation
    np.testing.assert_array_equal(np.sum(mask, axis=1), 1)
    _, mask = _masked(1.0).reset().observation
    np.testing.assert_array_equal(mask, 1)


def test_a_forbidden_arm_is_refused():
    bandit = _masked(0.0)
    _, mask = bandit.reset().observation
    bandit.step(tf.argmax(mask, axis=1, output_type=tf.int32))
    _, mask = bandit.current_time_step().observation
    forbidden = tf.argmin(mask, axis=1, output_type=tf.int32)
    with pytest.raises(tf.errors.InvalidArgumentError, match="not in allowed"):
        bandit.step(forbidden)


@pytest.mark.parametrize(
    "is_compiled", [False, pytest.param(True, marks=pytest.mark.slow)]
)
def test_masks_of_a_problem_in_tensorflow_go_with_its_rounds(is_compiled):
    plain = environments.load("PerArmBandit-v0", batch_size=4, seed=2)
    masked = environments.BernoulliActionMaskTFEnvironment(
        environments.load("PerArmBandit-v0", batch_size=4, seed=2),
        lambda x, mask: (x, mask),
        0.5,
        seed=3,
    )
    step = tf.function(masked.step, jit_compile=True) if is_compiled else masked.step
    before, now = plain.reset(), masked.reset()
    for _ in range(3):
        observation, mask = now.observation
        np.testing.assert_allclose(
            observation["per_arm"], before.observation["per_arm"], rtol=1e-6
        )
        arm = tf.argmax(mask, axis=1, output_type=tf.int32)
        before, now = plain.step(arm), step(arm)
        np.testing.assert_allclose(now.reward, before.reward, rtol=1e-5)
        assert now.is_last().numpy().all()
    with pytest.raises(ValueError, match="without rounds, expected a bandit"):
        environments.BernoulliActionMaskTFEnvironment(
            native.load("CartPole-v1"), lambda x, mask: (x, mask), 0.5
        )
