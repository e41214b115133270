"""Items of the adder of sequences against windows of lists."""

from hypothesis import given
from hypothesis import strategies as st

from tests.acme.adders import episodes
from tfrl.acme.adders import reverb as adders
from tfrl.acme.adders.reverb import EndBehavior


def windows(rows, length, period):
    """Returns the whole sequences of some rows, and what follows the last one."""
    starts = range(0, len(rows) - length + 1, period)
    done = starts[-1] + period if starts else 0
    return [rows[start : start + length] for start in starts], rows[done:]


@given(
    st.lists(st.integers(1, 7), min_size=1, max_size=3),
    st.integers(1, 4),
    st.integers(1, 5),
    st.sampled_from(EndBehavior),
)
def test_sequences_are_the_windows_of_the_episodes(
    client, drain, lengths, length, period, behavior
):
    adder = adders.SequenceAdder(
        client, length, period, end_of_episode_behavior=behavior
    )
    expected, every, first = [], [], 1
    for steps in lengths:
        episodes.add_episode(
            adder,
            episodes.time_steps(episodes.floats(*range(steps)), first=first),
        )
        rows = [*range(first, first + steps + 1)]
        first += 100
        every += rows
        if behavior is EndBehavior.CONTINUE:
            continue
        whole, rest = windows(rows, length, period)
        expected += whole
        # The rows in which a further sequence has begun and not ended.
        is_new = bool(rest) and (not whole or rest[-1] > whole[-1][-1])
        if behavior is EndBehavior.WRITE:
            is_done = bool(whole) and whole[-1][-1] == rows[-1]
            expected += [rows[-length:]] * (len(rows) >= length and not is_done)
        elif is_new:
            padding = [0] * (length - len(rest))
            expected += [rest + padding * (behavior is EndBehavior.ZERO_PAD)]
    if behavior is EndBehavior.CONTINUE:
        expected, _ = windows(every, length, period)
    assert [item.observation.tolist() for item in map(named, drain())] == expected


def named(item):
    return adders.Trajectory(*item)
