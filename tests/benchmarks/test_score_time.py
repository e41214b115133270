"""The clock of the workers that train to a score, and their evaluations."""

import itertools

import gymnasium
import numpy as np
import pytest

from benchmarks.workers import score_time, score_time_with_tfrl, seen_or_told

TASK = {"score": 475.0, "every": 100, "steps": 250}
SEEN_OR_TOLD = f"{seen_or_told.__name__}:SeenOrTold-v0"


def watching(returns, task=TASK):
    """A watch whose evaluations return these numbers, and whose clock ticks."""
    values = iter(returns)
    return score_time.Watch(
        task, lambda predict: next(values), itertools.count(0.0, 10.0).__next__
    )


def test_evaluations_are_due_after_each_interval_and_at_the_end():
    watch = watching([0.0, 0.0, 0.0])
    due = []
    for steps in range(0, 260, 40):
        if watch.is_due(steps):
            due.append(steps)
            watch.evaluate(steps, None)
    assert due == [120, 200]
    assert watch.is_due(250)


def test_the_first_evaluation_with_the_return_ends_the_run():
    watch = watching([474.9, 475.0])
    for steps in (100, 200):
        assert watch.is_due(steps)
        watch.evaluate(steps, None)
    assert watch.is_over
    assert not watch.is_due(250)
    result = watch.result()
    assert (result["steps"], result["return"], result["reached"]) == (200, 475.0, True)


def test_the_time_of_evaluations_does_not_count():
    """The clock ticks by 10 before and after each evaluation."""
    watch = watching([0.0, 500.0])
    watch.evaluate(100, None)
    watch.evaluate(200, None)
    result = watch.result()
    assert result["seconds"] == 20.0 - 10.0
    assert result["evaluation_seconds"] == 20.0


def test_a_run_that_ends_without_the_return_has_not_reached_it():
    watch = watching([400.0])
    watch.evaluate(250, None)
    assert watch.result()["reached"] is False


def test_all_episodes_are_played_to_their_ends_from_the_same_starts():
    seen = []

    def push_left(observations):
        seen.append(observations)
        return np.zeros(len(observations), int)

    first = score_time.play("CartPole-v1", push_left)
    starts = seen[0]
    assert starts.shape == (20, 4)
    assert len(np.unique(starts, axis=0)) == 20
    assert 8.0 < first < 11.0
    assert score_time.play("CartPole-v1", push_left) == first


def answers(sees, hears):
    """A policy of the image, of the number, or of both."""

    def predict(observations):
        right = observations["image"][:, :, 18:].any(axis=(1, 2, 3))
        told = observations["number"][:, 0]
        return np.where(told != 0, hears * (told > 0), sees * right)

    return predict


@pytest.mark.parametrize(
    ("sees", "hears", "low", "high"),
    [(1, 1, 10, 10), (1, 0, 6.5, 8.5), (0, 1, 6.5, 8.5)],
)
def test_both_parts_of_the_observation_are_needed(sees, hears, low, high):
    assert low <= score_time.play(SEEN_OR_TOLD, answers(sees, hears)) <= high


def test_the_environment_of_two_parts_keeps_gymnasiums_rules():
    from gymnasium.utils import env_checker

    env_checker.check_env(gymnasium.make(SEEN_OR_TOLD).unwrapped)


def test_tfrl_trains_until_an_evaluation_reaches_the_return():
    task = {
        **TASK,
        "algorithm": "A2C",
        "environment": "CartPole-v1",
        "settings": {"jit_compile": False},
    }
    watch = watching([10.0, 475.0], task)
    score_time_with_tfrl.train(task, seed=0, watch=watch)
    told = watch.result()
    assert told["reached"]
    assert 200 <= told["steps"] < 1000
