import numpy as np
import pytest

from tests.acme.wrappers.scripted import Scripted, play, step_types
from tfrl.acme import wrappers


def first_observations(seed, episodes=300, noop_max=4):
    inner = Scripted([0.0] * 20)
    environment = wrappers.NoopStartsWrapper(inner, 7, noop_max, seed)
    observations = [int(environment.reset().observation) for _ in range(episodes)]
    assert inner.actions == [7] * sum(observations)
    return observations


def test_each_number_of_no_ops_is_equally_likely():
    counts = np.bincount(first_observations(seed=0))
    assert len(counts) == 5
    # 60 each; four standard deviations are 28.
    assert counts.min() > 32
    assert counts.max() < 88


def test_the_seed_decides():
    assert first_observations(1, 20) == first_observations(1, 20)
    assert first_observations(1, 20) != first_observations(2, 20)


def test_episodes_begin_with_a_first_step_whatever_came_before():
    environment = wrappers.NoopStartsWrapper(Scripted([0.5] * 6), noop_max=3, seed=3)
    for _ in range(10):
        first = environment.reset()
        assert (first.first(), first.reward, first.discount) == (True, None, None)
        left = 6 - int(first.observation)
        steps = [environment.step(1) for _ in range(left + 1)]
        # The step after LAST begins with no-ops too.
        assert step_types(steps) == "M" * (left - 1) + "LF"


def test_an_episode_that_ends_meanwhile_is_begun_again():
    inner = Scripted([0.0, 0.0])
    environment = wrappers.NoopStartsWrapper(inner, noop_max=9, seed=0)
    observations = [int(environment.reset().observation) for _ in range(50)]
    assert set(observations) == {0, 1}
    assert inner.num_resets > 50


def test_none_is_no_wrapper():
    assert play(wrappers.NoopStartsWrapper(Scripted([1.0]), noop_max=0), 2) == play(
        Scripted([1.0]), 2
    )
    with pytest.raises(ValueError, match=r"noop_max: expected .* got -1"):
        wrappers.NoopStartsWrapper(Scripted([1.0]), noop_max=-1)
