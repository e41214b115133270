import numpy as np
import pytest

from tests.acme.wrappers.scripted import Scripted, play
from tfrl.acme import wrappers


@pytest.mark.parametrize(
    ("period", "rewards"),
    [
        (1, [1, 2, 4, 8, 16]),
        (2, [0, 3, 0, 12, 16]),
        (3, [0, 0, 7, 0, 24]),
        (5, [0, 0, 0, 0, 31]),
        (None, [0, 0, 0, 0, 31]),
    ],
)
def test_rewards_come_at_once_every_few_steps_and_at_the_end(period, rewards):
    environment = wrappers.DelayedRewardWrapper(
        Scripted([1.0, 2.0, 4.0, 8.0, 16.0]), period
    )
    for _ in range(2):
        timesteps = play(environment, 5)
        assert [t.reward for t in timesteps] == [None, *rewards]
        assert {t.reward.dtype for t in timesteps[1:]} == {np.dtype(np.float64)}
    assert timesteps[-1].discount == 0


def test_a_reset_forgets_rewards():
    environment = wrappers.DelayedRewardWrapper(Scripted([1.0] * 5), 3)
    play(environment, 2)
    assert [t.reward for t in play(environment, 3)] == [None, 0, 0, 3]


def test_a_period_of_none_at_all_is_refused():
    with pytest.raises(ValueError, match=r"accumulation_period: .* got 0"):
        wrappers.DelayedRewardWrapper(Scripted([1.0]), 0)
