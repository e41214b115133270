"""The items of the adder of sequences."""

import numpy as np
import pytest

from tests.acme.adders import episodes
from tfrl import specs
from tfrl.acme.adders import reverb as adders
from tfrl.acme.adders.reverb import EndBehavior
from tfrl.acme.adders.reverb.sequence import rows_to_next_sequence

WRITE, CONTINUE = EndBehavior.WRITE, EndBehavior.CONTINUE
ZERO_PAD, TRUNCATE = EndBehavior.ZERO_PAD, EndBehavior.TRUNCATE


def rewards(length):
    return episodes.floats(*range(1, length + 1))


def observations(client, drain, length, period, behavior, num_steps):
    """Returns the observations of the items of two episodes, from 1 and from 101."""
    adder = adders.SequenceAdder(
        client, length, period, end_of_episode_behavior=behavior
    )
    for first in (1, 101):
        episodes.add_episode(
            adder, episodes.time_steps(rewards(num_steps), np.int32, first=first)
        )
    return [item[0].tolist() for item in drain()]


def of_two(items):
    """Returns the items of two episodes, which count from 1 and from 101."""
    second = [[row + 100 if row else 0 for row in item] for item in items]
    return [*items, *second]


@pytest.mark.parametrize(
    ("behavior", "expected"),
    [
        (WRITE, of_two([[1, 2, 3], [4, 5, 6], [5, 6, 7]])),
        (ZERO_PAD, of_two([[1, 2, 3], [4, 5, 6], [7, 0, 0]])),
        (TRUNCATE, of_two([[1, 2, 3], [4, 5, 6], [7]])),
        # Rows 1 to 7, then 101 to 107: of 14 rows, four whole sequences.
        (
            CONTINUE,
            [[1, 2, 3], [4, 5, 6], [7, 101, 102], [103, 104, 105]],
        ),
    ],
)
def test_adjacent_sequences(client, drain, behavior, expected):
    assert observations(client, drain, 3, 3, behavior, num_steps=6) == expected


@pytest.mark.parametrize(
    ("behavior", "expected"),
    [
        (WRITE, of_two([[1, 2, 3], [3, 4, 5], [4, 5, 6]])),
        (ZERO_PAD, of_two([[1, 2, 3], [3, 4, 5], [5, 6, 0]])),
        (TRUNCATE, of_two([[1, 2, 3], [3, 4, 5], [5, 6]])),
        (
            CONTINUE,
            [
                [1, 2, 3],
                [3, 4, 5],
                [5, 6, 101],
                [101, 102, 103],
                [103, 104, 105],
            ],
        ),
    ],
)
def test_overlapping_sequences(client, drain, behavior, expected):
    assert observations(client, drain, 3, 2, behavior, num_steps=5) == expected


@pytest.mark.parametrize(
    ("behavior", "expected"),
    [
        (WRITE, []),
        (ZERO_PAD, of_two([[1, 2, 3, 0]])),
        (TRUNCATE, of_two([[1, 2, 3]])),
        (CONTINUE, [[1, 2, 3, 101]]),
    ],
)
def test_episodes_shorter_than_a_sequence(client, drain, behavior, expected):
    assert observations(client, drain, 4, 4, behavior, num_steps=2) == expected


@pytest.mark.parametrize("behavior", [WRITE, ZERO_PAD, TRUNCATE])
def test_a_sequence_that_ends_with_the_episode_is_written_once(client, drain, behavior):
    expected = of_two([[1, 2, 3], [3, 4, 5]])
    assert observations(client, drain, 3, 2, behavior, num_steps=4) == expected


@pytest.mark.parametrize(
    ("behavior", "expected"),
    [
        # Sequences of rows 1 2 and 6 7; 8 and 9 are between two of them.
        (ZERO_PAD, of_two([[1, 2], [6, 7]])),
        (TRUNCATE, of_two([[1, 2], [6, 7]])),
        (WRITE, of_two([[1, 2], [6, 7], [8, 9]])),
    ],
)
def test_rows_between_two_sequences_are_left_out(client, drain, behavior, expected):
    assert observations(client, drain, 2, 5, behavior, num_steps=8) == expected


def test_a_row_has_all_fields_and_the_last_one_zeros(client, drain):
    adder = adders.SequenceAdder(client, 4, 4)
    episodes.add_episode(
        adder,
        episodes.time_steps(
            [np.array([1, 10], np.float32), np.array([2, 20], np.float32)],
            lambda t: {"a": np.int32(t), "b": np.full(2, t, np.uint8)},
            first=1,
            discount=0.5,
            is_truncated=True,
        ),
        action=lambda t: (np.float32(t),),
        extras=lambda t: {"core": np.full(1, t + 1, np.float64)},
    )
    (item,) = drain()
    assert [column.tolist() for column in item] == [
        [1, 2, 3, 0],
        [[1, 1], [2, 2], [3, 3], [0, 0]],
        [10, 11, 0, 0],
        [[1, 10], [2, 20], [0, 0], [0, 0]],
        [0.5, 0.5, 0, 0],
        [True, False, False, False],
        [[1], [2], [0], [0]],
    ]
    names = ["int32", "uint8", "float32", "float32", "float32", "bool", "float64"]
    assert [column.dtype.name for column in item] == names


def test_priorities_are_of_whole_sequences(client):
    seen = []

    def by_rewards(sequence):
        seen.append(sequence)
        return sequence.reward.sum()

    adder = adders.SequenceAdder(
        client,
        2,
        2,
        priority_fns={
            "second": by_rewards,
            "third": lambda sequence: sequence.start_of_episode.sum(),
        },
    )
    episodes.add_episode(adder, episodes.time_steps(rewards(4)))
    drawn = {
        table: [
            sample.info.priority
            for sample in client.sample(table, 3, emit_timesteps=False)
        ]
        for table in ("second", "third")
    }
    assert drawn == {"second": [3, 7, 0], "third": [1, 0, 0]}
    assert isinstance(seen[0], adders.Trajectory)
    np.testing.assert_array_equal(seen[1].observation, np.float32([2, 3]))


@pytest.mark.parametrize(("rows", "expected"), [(1, 3), (4, 0), (5, 1), (6, 0), (7, 1)])
def test_rows_to_next_sequence(rows, expected):
    assert rows_to_next_sequence(rows, sequence_length=4, period=2) == expected


@pytest.mark.parametrize(
    ("older", "behavior"),
    [
        ({}, ZERO_PAD),
        ({"pad_end_of_episode": False}, TRUNCATE),
        ({"pad_end_of_episode": True, "break_end_of_episode": True}, ZERO_PAD),
        ({"pad_end_of_episode": False, "break_end_of_episode": False}, CONTINUE),
        ({"break_end_of_episode": False}, CONTINUE),
    ],
)
def test_older_arguments_choose_the_end_behavior(client, drain, older, behavior):
    expected = observations(client, drain, 3, 2, behavior, num_steps=5)
    adder = adders.SequenceAdder(client, 3, 2, **older)
    for first in (1, 101):
        episodes.add_episode(
            adder, episodes.time_steps(rewards(5), np.int32, first=first)
        )
    assert [item[0].tolist() for item in drain()] == expected


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"sequence_length": 0}, r"sequence_length: .* got 0"),
        ({"period": 0}, r"period: .* got 0"),
        ({"end_of_episode_behavior": "write"}, "got 'write', expected one of"),
        (
            {"end_of_episode_behavior": WRITE, "pad_end_of_episode": False},
            "leave out the older two",
        ),
        (
            {"pad_end_of_episode": True, "break_end_of_episode": False},
            "got True and False",
        ),
        ({"max_in_flight_items": -1}, r"max_in_flight_items: .* got -1"),
    ],
)
def test_invalid_arguments_are_refused(client, arguments, message):
    with pytest.raises(ValueError, match=message):
        adders.SequenceAdder(client, **{"sequence_length": 2, "period": 1} | arguments)


def test_the_signature_has_the_length_first():
    environment_spec = specs.EnvironmentSpec(
        observations={"x": specs.ArraySpec((4,), np.float32)},
        actions=specs.BoundedArraySpec((), np.int64, 0, 3),
        rewards=specs.ArraySpec((), np.float32),
        discounts=specs.ArraySpec((), np.float32),
    )
    extras = {"core": specs.ArraySpec((2,), np.float16)}
    signature = adders.SequenceAdder.signature(environment_spec, extras, 5)
    assert isinstance(signature, adders.Trajectory)
    assert signature.observation["x"].shape == (5, 4)
    assert signature.action.shape == (5,)
    assert signature.action.dtype == "int64"
    assert signature.start_of_episode.dtype == "bool"
    assert signature.extras["core"].name == "extras/core"
    any_length = adders.EpisodeAdder.signature(environment_spec)
    assert any_length.observation["x"].shape.as_list() == [None, 4]
    assert any_length.extras == ()
