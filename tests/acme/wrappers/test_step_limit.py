import pytest

from tests.acme.wrappers.scripted import Scripted, play, step_types
from tfrl.acme import wrappers


def test_episodes_are_truncated_with_their_discount():
    inner = Scripted([1.0] * 5, [0.5] * 4 + [0.0])
    environment = wrappers.StepLimitWrapper(inner, 2)
    timesteps = play(environment, 5)
    assert step_types(timesteps) == "FMLFML"
    assert (timesteps[2].discount, timesteps[2].reward) == (0.5, 1)
    assert timesteps[2].observation == 2
    assert timesteps[3].observation == 0
    assert inner.num_resets == 2


def test_a_termination_at_the_limit_stays_one():
    last = play(wrappers.StepLimitWrapper(Scripted([1.0, 1.0]), 2), 2)[-1]
    assert (last.last(), last.discount) == (True, 0)


def test_the_count_begins_again_after_an_episode_that_ended_earlier():
    environment = wrappers.StepLimitWrapper(Scripted([1.0] * 3), 4)
    assert step_types(play(environment, 7)) == "FMMLFMML"


def test_none_is_no_limit():
    environment = wrappers.StepLimitWrapper(Scripted([1.0] * 3))
    assert step_types(play(environment, 4)) == "FMMLF"
    with pytest.raises(ValueError, match=r"step_limit: expected .* got 0"):
        wrappers.StepLimitWrapper(environment, 0)
