"""Rankings in Python: clicks by hand, and their frequencies."""

import numpy as np
import pytest

from tfrl.bandits import environments
from tfrl.bandits.environments import ranking_environment
from tfrl.bandits.environments.ranking_environment import ClickModel, FeedbackModel

WEIGHTS = np.array([[1.0, 0.0], [0.0, 2.0], [1.0, 1.0]])


def _environment(batch_size, num_slots=2, global_fn=None, seed=0, **kwargs):
    rng = np.random.default_rng(1)
    return environments.RankingPyEnvironment(
        global_fn or (lambda: rng.normal(size=2)),
        lambda: rng.normal(size=3),
        5,
        num_slots,
        WEIGHTS,
        batch_size=batch_size,
        seed=seed,
        **kwargs,
    )


def _relevance(observation, action):
    items = np.take_along_axis(observation["per_arm"], action[..., np.newaxis], axis=1)
    return np.array(
        [
            [item @ WEIGHTS @ user for item in row]
            for row, user in zip(items, observation["global"], strict=True)
        ]
    )


@pytest.mark.parametrize("is_cascade", [False, True])
@pytest.mark.parametrize(
    "feedback", [FeedbackModel.CASCADING, FeedbackModel.SCORE_VECTOR]
)
def test_users_click_what_is_relevant_enough(is_cascade, feedback):
    bandit = _environment(
        60,
        feedback_model=feedback,
        click_model=ClickModel.DISTANCE_BASED,
        real_cascade=is_cascade,
        distance_threshold=0.5,
    )
    observation = bandit.reset().observation
    action = np.random.default_rng(0).integers(5, size=[60, 2])
    reward = bandit.step(action).reward
    expected = []
    for row in _relevance(observation, action):
        is_enough = row >= 0.5
        slot = is_enough.argmax() if is_cascade else row.argmax()
        expected.append(slot if is_enough.any() else 2)
    assert set(expected) == {0, 1, 2}
    if feedback == FeedbackModel.CASCADING:
        np.testing.assert_array_equal(reward["chosen_index"], expected)
        np.testing.assert_array_equal(reward["chosen_value"], np.less(expected, 2))
    else:
        np.testing.assert_array_equal(reward, np.eye(3)[expected, :2])


def test_ghosts_are_chosen_by_their_sigmoids():
    # Without relevance all have the same chance: 2 slots, and 3 ghosts for no click.
    bandit = _environment(4000, global_fn=lambda: np.zeros(2))
    bandit.reset()
    index = bandit.step(np.zeros([4000, 2], int)).reward["chosen_index"]
    share = np.bincount(index, minlength=3) / 4000
    np.testing.assert_allclose(share, [0.2, 0.2, 0.6], atol=0.03)


def test_a_seed_repeats_the_clicks():
    rewards = []
    for _ in range(2):
        bandit = _environment(50, seed=3)
        bandit.reset()
        rewards.append(bandit.step(np.zeros([50, 2], int)).reward["chosen_index"])
    np.testing.assert_array_equal(*rewards)


def test_clicks_depend_on_the_slot_and_the_relevance():
    bandit = environments.ExplicitPositionalBiasRankingEnvironment(
        lambda: np.zeros(1),
        lambda: np.array([0.5]),
        lambda of_all, item: 2 * item[0] - 0.2,  # 0.8
        4,
        [1.0, 0.5, 0.0],
        batch_size=2000,
        seed=0,
    )
    assert bandit.action_spec().shape == (3,)
    bandit.reset()
    reward = bandit.step(np.tile([0, 1, 2], [2000, 1])).reward
    np.testing.assert_allclose(reward.mean(axis=0), [0.8, 0.4, 0.0], atol=0.03)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"feedback_model": FeedbackModel.UNKNOWN}, "feedback_model: got"),
        ({"click_model": 7}, "click_model: got 7"),
        ({"click_model": ClickModel.DISTANCE_BASED}, "distance_threshold: got None"),
    ],
)
def test_models_that_do_not_exist_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        _environment(1, **arguments)


def test_chances_that_are_no_probabilities_are_refused():
    with pytest.raises(ValueError, match="observation_probs"):
        ranking_environment.ExplicitPositionalBiasRankingEnvironment(
            lambda: np.zeros(1), lambda: np.zeros(1), lambda *_: 0.5, 4, [1.1]
        )
