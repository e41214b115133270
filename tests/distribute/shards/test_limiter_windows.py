"""The rate limiters of shards: what would block them, and how to divide them."""

import pytest

from tfrl import replay_service
from tfrl.distribute.shards import limiter_windows
from tfrl.replay_service import rate_limiters


def info_of(limiter, **options):
    return replay_service.Table(
        "t",
        replay_service.selectors.Uniform(),
        replay_service.selectors.Fifo(),
        10_000,
        limiter,
        **options,
    ).info


def test_narrow_windows_that_block_a_writer_and_a_learner_at_two_shards_are_refused():
    # Episodes of 30 steps and batches of 8: after 17 items the writer waits at one
    # shard, while the learner waits at the other.
    infos = [info_of(rate_limiters.SampleToInsertRatio(1.0, 1, 8.0))] * 2
    with pytest.raises(ValueError, match="a window of 16") as error:
        limiter_windows.check(infos, items_per_message=30, samples_per_draw=8)
    assert str(error.value) == (
        "rate_limiter: got 1 samples per insert within [-7, 9] for table 't' of shard "
        "0, a window of 16; expected at least 38, room for a message of 30 items and a "
        "draw of 8, because a writer could wait at one shard for samples while the "
        "learner waits at another for items. Make the shards' limiter with "
        "limiter_windows.divide."
    )
    limiter_windows.check(infos, items_per_message=8, samples_per_draw=8)
    limiter_windows.check(infos[:1], items_per_message=30, samples_per_draw=8)


def test_a_window_that_is_divided_plainly_is_refused():
    # 8 samples per insert: the window of a 64th does not hold a message of 64 items.
    plain = rate_limiters.SampleToInsertRatio(8.0, 16, 185.0)
    with pytest.raises(ValueError, match="a window of 370; expected at least 512"):
        limiter_windows.check([info_of(plain)] * 64)


def test_tables_without_a_ratio_are_not_refused():
    infos = [info_of(rate_limiters.MinSize(1)), replay_service.Table.queue("q", 2).info]
    limiter_windows.check(infos, samples_per_draw=100)


@pytest.mark.parametrize(
    ("buffer", "num_shards", "draw", "expected"),
    [
        (8_000.0, 4, 0, 2_000.0),  # The whole window, divided.
        (8_000.0, 64, 0, 1_024.0),  # Twice 8 samples of each of 64 items.
        (8_000.0, 64, 2_000, 4_000.0),  # Twice a draw.
    ],
)
def test_a_divided_limiter_keeps_the_ratio_and_the_sum_of_sizes(
    buffer, num_shards, draw, expected, caplog
):
    whole = rate_limiters.SampleToInsertRatio(8.0, 1_000, buffer)
    part = limiter_windows.divide(whole, num_shards, samples_per_draw=draw)
    size = -(-1_000 // num_shards)
    assert part == rate_limiters.RateLimiter(
        8.0, size, 8.0 * size - expected, 8.0 * size + expected
    )
    limiter_windows.check([info_of(part)] * num_shards, samples_per_draw=draw)
    # A window that is wider than the whole one is told.
    told = [
        f"may stray by -8000 and +8000, but by -{expected * 64:g} and "
        f"+{expected * 64:g} over all of 64 shards"
    ] * (num_shards == 64)
    assert len(caplog.messages) == len(told)
    assert all(text in line for text, line in zip(told, caplog.messages, strict=True))


def test_a_window_beside_the_middle_stays_there():
    whole = rate_limiters.SampleToInsertRatio(1.0, 100, (-1_000.0, 500.0))
    part = limiter_windows.divide(whole, 2, items_per_message=4)
    assert (part.min_size_to_sample, part.min_diff, part.max_diff) == (50, -500, 250)


def test_queues_and_limiters_without_a_window_are_divided():
    assert limiter_windows.divide(rate_limiters.Queue(9), 2) == rate_limiters.Queue(5)
    part = limiter_windows.divide(rate_limiters.MinSize(9), 2)
    assert part.min_size_to_sample == 5
    limiter_windows.check([info_of(part)] * 2, samples_per_draw=10_000)


def test_a_division_by_nothing_is_refused():
    with pytest.raises(ValueError, match="num_shards"):
        limiter_windows.divide(rate_limiters.MinSize(1), 0)
