"""How many rows each shard gives, against exact fractions."""

import fractions

import numpy as np
import pytest

from tfrl.distribute.shards import batch_shares


def test_shares_are_the_fractions_of_sizes_and_masses():
    sizes, masses = [10, 30, 0], [6.0, 2.0, 0.0]
    assert batch_shares.shares("size", sizes, masses) == [0.25, 0.75, 0.0]
    assert batch_shares.shares("mass", sizes, masses) == [0.75, 0.25, 0.0]
    assert batch_shares.shares("equal", sizes, masses) == [0.5, 0.5, 0.0]


def test_without_priorities_sizes_count():
    assert batch_shares.shares("mass", [10, 30], [0.0, 0.0]) == [0.25, 0.75]


@pytest.mark.parametrize("weighting", batch_shares.WEIGHTINGS)
def test_empty_shards_have_no_shares(weighting):
    assert batch_shares.shares(weighting, [0, 0], [0.0, 0.0]) == [0.0, 0.0]


def test_an_unknown_weighting_is_refused():
    with pytest.raises(ValueError, match="weighting: got 'mas', expected one of size"):
        batch_shares.shares("mas", [1], [1.0])


@pytest.mark.parametrize(
    ("quotas", "count", "expected"),
    [
        ([1.5, 2.25, 4.25], 8, [2, 2, 4]),
        ([0.4, 0.4, 0.2], 1, [1, 0, 0]),
        ([3.0, -0.5, 1.5], 4, [3, 0, 1]),  # What the second has given too much.
        ([2.0, None, 2.0], 6, [3, 0, 3]),  # The second is not there.
        ([5.5, 0.25], 4, [4, 0]),
    ],
)
def test_rows_go_to_the_largest_remainders(quotas, count, expected):
    assert batch_shares.rounded(quotas, count) == expected


@pytest.mark.parametrize("size", [1, 7, 64])
def test_no_shard_is_ever_a_row_off_its_exact_share(size):
    exact = [fractions.Fraction(n, 60) for n in (5, 15, 40)]
    share = [float(fraction) for fraction in exact]
    apportionment = batch_shares.Apportionment(3)
    total = np.zeros(3, int)
    for number in range(1, 200):
        rows = apportionment.split(share, size)
        assert sum(rows) == size
        assert min(rows) >= 0
        apportionment.settle(share, rows)
        total += rows
        for given, fraction in zip(total.tolist(), exact, strict=True):
            assert abs(given - number * size * fraction) < 1


def test_many_shards_of_changing_shares_stay_near_their_exact_shares():
    random = np.random.default_rng(0)
    apportionment = batch_shares.Apportionment(64)
    owed = [fractions.Fraction(0)] * 64
    for _ in range(200):
        sizes = random.integers(0, 100, 64).tolist()
        exact = [fractions.Fraction(n, sum(sizes)) for n in sizes]
        share = batch_shares.shares("size", sizes, sizes)
        rows = apportionment.split(share, 100)
        assert not any(n for n, s in zip(rows, share, strict=True) if not s)
        apportionment.settle(share, rows)
        owed = [o + 100 * e - r for o, e, r in zip(owed, exact, rows, strict=True)]
        assert max(map(abs, owed)) < 3


def test_whole_batches_come_in_turn_as_often_as_the_shares_say():
    apportionment = batch_shares.Apportionment(3, mixed=False)
    share, order = [0.5, 0.0, 0.5], []
    for _ in range(4):
        rows = apportionment.split(share, 8)
        apportionment.settle(share, rows)
        order.append(rows)
    assert order == [[8, 0, 0], [0, 0, 8]] * 2
    random = np.random.default_rng(0).dirichlet(np.ones(9)).tolist()
    apportionment = batch_shares.Apportionment(9, mixed=False)
    total = np.zeros(9)
    for _ in range(1000):
        rows = apportionment.split(random, 8)
        apportionment.settle(random, rows)
        total += rows
    # Within two batches.
    np.testing.assert_allclose(total, 8000 * np.array(random), atol=16)


def test_what_a_shard_owes_is_given_later_but_never_more_than_two_batches():
    share = [0.5, 0.5]
    apportionment = batch_shares.Apportionment(2)
    apportionment.settle(share, [8, 0])  # The second was late.
    assert apportionment.split(share, 8) == [0, 8]
    apportionment.settle(share, [0, 8])
    assert apportionment.split(share, 8) == [4, 4]
    for _ in range(100):
        apportionment.settle(share, [8, 0])
    paid = []
    for _ in range(6):
        paid.append(apportionment.split(share, 8))
        apportionment.settle(share, paid[-1])
    assert paid == [[0, 8]] * 4 + [[4, 4]] * 2
