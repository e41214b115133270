"""TF-Agents' bandits in Python: rewards by hand, seeds, and what is refused."""

import numpy as np
import pytest
import tree

from tfrl import environments as all_environments
from tfrl.bandits import agents, environments
from tfrl.bandits.environments import dataset_utilities, wheel_py_environment
from tfrl.drivers import DynamicStepDriver
from tfrl.specs import array_spec

WHEEL = 0.5, [1.2, 1.0, 1.0, 1.0, 1.0], [0.0] * 5, 50.0, 0.0
FEATURES = {"a": np.arange(3.0), "b": np.ones([2, 2])}


def _counter(step=1.0):
    """A function that returns the arrays [0, 0], [step, step] and so on."""
    count = iter(range(1000))
    return lambda: np.full([2], step * next(count), np.float32)


def _stationary(**kwargs):
    count = iter(range(1000))
    return environments.StationaryStochasticPyEnvironment(
        lambda: np.float32([[next(count)], [10]]),
        [lambda x: x[0], lambda x: -x[0]],
        batch_size=2,
        **kwargs,
    )


def _per_arm(**kwargs):
    return environments.StationaryStochasticPerArmPyEnvironment(
        _counter(), _counter(0.25), 3, np.sum, batch_size=2, **kwargs
    )


def _structured():
    return environments.StationaryStochasticStructuredPyEnvironment(
        _counter(), lambda: FEATURES, 3, lambda x, arm: x[0] + arm["a"][2], 2
    )


def _movies(folder, kind, **kwargs):
    """All ratings are products of the users' and the movies' numbers."""
    path = folder / "ratings.csv"
    rows = [f"{u},{m},{u * m / 2},0" for u in range(1, 5) for m in range(1, 4)]
    path.write_text("\n".join(rows))
    return kind(str(path), 1, batch_size=2, seed=0, **kwargs)


MAKERS = {
    "bernoulli": lambda: environments.BernoulliPyEnvironment([0.1, 0.9], 2, seed=0),
    "wheel": lambda: environments.WheelPyEnvironment(*WHEEL, 2, seed=0),
    "stationary": _stationary,
    "per arm": lambda: _per_arm(num_actions_fn=lambda: 2),
    "structured": _structured,
}


@pytest.mark.parametrize("name", MAKERS)
def test_rounds_have_their_specs(name):
    bandit = MAKERS[name]()
    assert bandit.is_bandit
    assert bandit.batched
    assert bandit.batch_size == 2
    spec = array_spec.add_outer_dims_nest(bandit.time_step_spec(), (2,))
    for step in (bandit.reset(), bandit.step([0, 1]), bandit.step([1, 1])):
        tree.map_structure(lambda s, x: s.check_array(np.asarray(x)), spec, step)
    assert (step.step_type == 2).all()
    with pytest.raises(ValueError, match=r"action: got shape \(1,\), expected \(2,\)"):
        bandit.step([0])


def test_bernoulli_rewards_have_the_means_and_follow_the_seed():
    bandit, again = (
        environments.BernoulliPyEnvironment([0.2, 0.7], 4000, seed=3) for _ in range(2)
    )
    for each in (bandit, again):
        each.reset()
    rewards = [bandit.step(np.full([4000], arm)).reward for arm in (0, 1)]
    np.testing.assert_allclose(np.mean(rewards, axis=1), [0.2, 0.7], atol=0.03)
    np.testing.assert_array_equal(again.step(np.zeros([4000], int)).reward, rewards[0])
    with pytest.raises(ValueError, match=r"means\[1\]: expected a number in .*got 1.5"):
        environments.BernoulliPyEnvironment([0.1, 1.5])


def test_the_wheel_rewards_the_best_arm_of_each_quadrant():
    bandit = environments.WheelPyEnvironment(*WHEEL, 500, seed=0)
    context = bandit.reset().observation
    best = wheel_py_environment.compute_optimal_action(context, 0.5)
    outside = np.hypot(*context.T) > 0.5
    np.testing.assert_array_equal(outside, best > 0)
    signs = {1: (1, 1), 2: (1, -1), 3: (-1, 1), 4: (-1, -1)}
    for arm, expected in signs.items():
        assert (np.sign(context[best == arm]) == expected).all()
    reward = bandit.step(best).reward
    np.testing.assert_allclose(reward, np.where(outside, 50, 1.2), rtol=1e-6)
    expected = wheel_py_environment.compute_optimal_reward(context, 0.5, 1.2, 50.0)
    np.testing.assert_allclose(reward, expected, rtol=1e-6)
    reached = bandit.step(np.zeros([500], int)).reward
    np.testing.assert_allclose(reached, 1.2, rtol=1e-6)


def test_a_coordinate_of_the_wheel_may_be_0():
    context = np.float32([[0.9, 0.0], [0.0, -0.9], [0.0, 0.0]])
    best = wheel_py_environment.compute_optimal_action(context, 0.5)
    assert best.tolist() == [1, 2, 0]


def test_the_best_arm_inside_the_wheel_is_the_first():
    with pytest.raises(ValueError, match=r"mu_base: got .*first is the largest"):
        environments.WheelPyEnvironment(0.5, [1, 2, 1, 1, 1], [0] * 5, 50, 0)


def test_rewards_are_the_arms_functions_of_the_contexts():
    bandit = _stationary()
    context = bandit.reset().observation
    reward = bandit.step([0, 1]).reward
    np.testing.assert_array_equal(reward, [context[0, 0], -10])
    with pytest.raises(ValueError, match="context_sampling_fn: got 2 contexts"):
        environments.StationaryStochasticPyEnvironment(lambda: np.ones([2, 1]), [sum])


def test_constraints_stand_beside_the_rewards():
    bandit = _stationary(constraint_fns=[lambda x: x + 1, lambda x: x + 2])
    bandit.reset()
    reward = bandit.step([1, 0]).reward
    assert reward["reward"].shape == (2,)
    np.testing.assert_array_equal(reward["constraint"][1], [11])


def test_a_reward_sees_global_and_arm_features():
    bandit = _per_arm(num_actions_fn=lambda: 7)
    observation = bandit.reset().observation
    assert observation["num_actions"].tolist() == [3, 3]
    reward = bandit.step([2, 0]).reward
    arms = observation["per_arm"]
    expected = observation["global"].sum(1) + arms[[0, 1], [2, 0]].sum(1)
    np.testing.assert_allclose(reward, expected)
    structured = _structured()
    observation = structured.reset().observation
    assert observation["per_arm"]["b"].shape == (2, 3, 2, 2)
    expected = observation["global"][:, 0] + 2
    np.testing.assert_allclose(structured.step([0, 1]).reward, expected)


def test_an_agent_learns_a_bandit_in_python():
    bandit = all_environments.TFPyEnvironment(
        environments.WheelPyEnvironment(*WHEEL, 16, seed=0)
    )
    agent = agents.LinearUCBAgent(
        bandit.time_step_spec(), bandit.action_spec(), alpha=0.1, seed=0
    )
    frames = []
    driver = DynamicStepDriver(
        bandit, agent.collect_policy, [frames.append], num_steps=32
    )
    driver.run()
    rows = tree.map_structure(lambda *x: np.stack(x, axis=1), *frames)
    agent.train(rows)
    assert float(sum(agent.num_samples)) == 32


def test_movies_have_the_ratings_of_the_file(tmp_path):
    bandit = _movies(tmp_path, environments.MovieLensPyEnvironment, num_movies=3)
    bandit.reset()
    reward = bandit.step([0, 2]).reward
    # The ratings are products of 1 to 4 and 1 to 3, by 2, and so have rank 1.
    assert np.abs(reward[0] - [0.5, 1.0, 1.5, 2.0]).min() < 1e-5
    np.testing.assert_array_equal(bandit.compute_optimal_action(), [2, 2])
    assert bandit.compute_optimal_reward()[1] == pytest.approx(reward[1])


def test_movies_of_a_round_differ_and_have_features(tmp_path):
    bandit = _movies(tmp_path, environments.MovieLensPerArmPyEnvironment, num_actions=3)
    observation = bandit.reset().observation
    arms = observation["per_arm"][..., 0]
    assert all(len(set(row)) == 3 for row in np.round(arms, 4))
    action = np.abs(arms).argmax(axis=1)
    reward = bandit.step(action).reward
    np.testing.assert_array_equal(bandit.compute_optimal_action(), action)
    np.testing.assert_allclose(bandit.compute_optimal_reward(), reward)
    users = np.abs(observation["global"][:, 0]) * np.sqrt(30)
    np.testing.assert_allclose(reward, users * 3 / 2, rtol=1e-5)


def test_ratings_are_a_table_of_users_and_movies(tmp_path):
    path = tmp_path / "u.data"
    path.write_text("2\t3\t4\t881250949\n1\t1\t5\t881250949\n")
    ratings = dataset_utilities.load_movielens_data(str(path), delimiter="\t")
    np.testing.assert_array_equal(ratings, [[5, 0, 0], [0, 0, 4]])
