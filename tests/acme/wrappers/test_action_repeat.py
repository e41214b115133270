import numpy as np
import pytest

from tests.acme.wrappers.scripted import Scripted, play, step_types
from tfrl.acme import wrappers


def test_rewards_are_summed_with_the_discounts_before_them():
    inner = Scripted([1.0, 2.0, 4.0, 8.0, 16.0], [0.5, 0.5, 0.5, 0.25, 0.0])
    timesteps = play(wrappers.ActionRepeatWrapper(inner, 3), 3, action=1)
    assert step_types(timesteps) == "FMLF"
    _, middle, last, _ = timesteps
    # 1 + 0.5 * 2 + 0.25 * 4, and 8 + 0.25 * 16, because the episode ends.
    assert (middle.reward, last.reward) == (3, 12)
    assert (middle.discount, last.discount) == (0.125, 0)
    assert (middle.observation, last.observation) == (3, 5)
    assert inner.actions == [1] * 5


def test_the_discount_of_a_truncation_stays():
    inner = Scripted([1.0, 1.0], [1.0, 1.0])
    last = play(wrappers.ActionRepeatWrapper(inner, 4), 1)[-1]
    assert (last.last(), last.reward, last.discount) == (True, 2, 1)


def test_nests_of_rewards_are_summed():
    class Nested(Scripted):
        def reward_spec(self):
            return {"a": super().reward_spec().replace(dtype=np.float32)}

    inner = Nested([{"a": np.float32(1)}, {"a": np.float32(2)}])
    reward = play(wrappers.ActionRepeatWrapper(inner, 2), 1)[-1].reward
    assert (reward["a"], reward["a"].dtype) == (3, np.float32)


def test_once_changes_nothing():
    one, other = Scripted([1.0, 2.0]), Scripted([1.0, 2.0])
    assert play(wrappers.ActionRepeatWrapper(one), 4) == play(other, 4)


def test_fewer_than_one_is_refused():
    with pytest.raises(ValueError, match=r"num_repeats: expected .* got 0"):
        wrappers.ActionRepeatWrapper(Scripted([0.0]), 0)
