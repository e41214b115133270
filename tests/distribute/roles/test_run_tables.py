"""The tables of several servers, from the table of the whole."""

import dataclasses

import pytest

from tests.distribute.small_impala import IMPALA
from tfrl import replay_service
from tfrl.distribute.roles import run_tables
from tfrl.replay_service import rate_limiters


def make_table(max_size, limiter):
    return replay_service.Table(
        "experience",
        replay_service.selectors.Prioritized(0.6),
        replay_service.selectors.Fifo(),
        max_size,
        limiter,
    )


def divided(table, num_shards):
    return run_tables.divided(
        table, num_shards, items_per_message=10, samples_per_draw=32
    )


def test_a_table_is_divided_with_its_limiter_and_keeps_the_rest():
    whole = make_table(1000, rate_limiters.SampleToInsertRatio(4.0, 100, 400.0))
    part = divided(whole, 4)
    assert part.info.max_size == 250
    limiter = part.rate_limiter
    assert (limiter.samples_per_insert, limiter.min_size_to_sample) == (4.0, 25)
    # A quarter of 400 would hold a message of 10 items and a draw of 32 only just.
    assert (limiter.min_diff, limiter.max_diff) == (0.0, 200.0)
    assert part.info.sampler_options.prioritized.priority_exponent == 0.6
    assert divided(whole, 1) is whole


def test_a_queue_is_divided():
    part = divided(replay_service.Table.queue("experience", 9), 2)
    assert part.info.max_size == 5
    assert part.rate_limiter.max_diff == 5


@pytest.mark.parametrize(
    ("max_size", "num_shards", "expected"),
    [(3, 4, "expected 1 to 3"), (40_000_000, 2, "expected 3 to 256")],
)
def test_a_size_that_cannot_be_divided_is_refused(max_size, num_shards, expected):
    whole = make_table(max_size, rate_limiters.MinSize(1))
    with pytest.raises(ValueError, match=f"max_size {max_size}, {expected}"):
        divided(whole, num_shards)


def test_the_first_of_several_servers_has_all_other_tables_and_all_have_signatures():
    experiment = dataclasses.replace(
        IMPALA, make_table=lambda *_: make_table(20, rate_limiters.MinSize(1))
    )
    shards = run_tables.make_shards(experiment, 3)
    assert all(table.info.signature is not None for shard in shards for table in shard)
    names = [[table.name for table in shard] for shard in shards]
    assert names == [
        ["experience", "variables", "reports", "evaluations", "evaluation_results"],
        ["experience"],
        ["experience"],
    ]
