"""The items of the adders of episodes."""

import numpy as np
import pytest

from tests.acme.adders import episodes
from tfrl.acme.adders import reverb as adders

REWARDS = episodes.floats(1, 2, 3, 4)
ROWS = [
    [1, 2, 3, 4, 5],
    [10, 11, 12, 13, 0],
    [1, 2, 3, 4, 0],
    [1, 1, 1, 0, 0],
    [True, False, False, False, False],
]


def test_an_item_has_all_observations(client, drain):
    adder = adders.EpisodeAdder(client, max_sequence_length=5)
    for _ in range(2):
        episodes.add_episode(adder, episodes.time_steps(REWARDS, np.int32, first=1))
        (item,) = drain()
        assert [column.tolist() for column in item] == ROWS


def test_an_episode_that_is_too_long_is_refused(client, drain):
    adder = adders.EpisodeAdder(client, max_sequence_length=4)
    with pytest.raises(ValueError, match=r"got 4, but this step is number 4 .* 5 obs"):
        episodes.add_episode(adder, episodes.time_steps(REWARDS))
    adder.reset()
    episodes.add_episode(adder, episodes.time_steps(REWARDS[:3], np.float32))
    (item,) = drain()
    assert item[0].tolist() == [0, 1, 2, 3]


def test_padding_is_made_by_a_function(client, drain):
    adder = adders.EpisodeAdder(
        client, 7, padding_fn=lambda shape, dtype: np.full(shape, 7, dtype)
    )
    episodes.add_episode(
        adder,
        episodes.time_steps(REWARDS, lambda t: {"x": np.full(2, t, np.float32)}),
        extras=lambda t: (np.float32(t),),
    )
    (item,) = drain()
    observation, action, reward, discount, starts, extras = item
    np.testing.assert_array_equal(observation[:, 1], [0, 1, 2, 3, 4, 7, 7])
    np.testing.assert_array_equal(action, [*ROWS[1], 7, 7])
    np.testing.assert_array_equal(reward, [*ROWS[2], 7, 7])
    np.testing.assert_array_equal(discount, [*ROWS[3], 7, 7])
    np.testing.assert_array_equal(starts, [*ROWS[4], False, False])
    np.testing.assert_array_equal(extras, [0, 1, 2, 3, 0, 7, 7])


@pytest.mark.parametrize("num_steps", [2, 4])
def test_a_padded_adder_pads_with_zeros(client, drain, num_steps):
    adder = adders.PaddedEpisodeAdder(client, 5)
    episodes.add_episode(
        adder, episodes.time_steps(REWARDS[:num_steps], np.int32, first=1)
    )
    (item,) = drain()
    expected = list(range(1, num_steps + 2)) + [0] * (4 - num_steps)
    assert item[0].tolist() == expected
    assert all(len(column) == 5 for column in item)


def test_a_priority_function_sees_the_padded_episode(client):
    adder = adders.PaddedEpisodeAdder(
        client,
        6,
        priority_fns={"second": lambda episode: len(episode.reward)},
    )
    episodes.add_episode(adder, episodes.time_steps(REWARDS))
    (sample,) = client.sample("second", 1, emit_timesteps=False)
    assert sample.info.priority == 6


def test_room_for_one_observation_is_refused(client):
    with pytest.raises(ValueError, match=r"max_sequence_length: .* got 1"):
        adders.EpisodeAdder(client, 1)
