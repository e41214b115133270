"""The exact test of two agents against SciPy and all assignments."""

import itertools

import numpy as np
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from tfrl.eval import rank_tests

SIZES = st.integers(1, 4)


def column(scores):
    return np.reshape(scores, (-1, 1))


@given(SIZES, SIZES, st.randoms(use_true_random=False))
def test_without_equal_scores_it_is_mann_whitneys(m, n, random):
    scores = random.sample(range(50), m + n)
    x, y = scores[:m], scores[m:]
    got = rank_tests.p_value(column(x), column(y))
    expected = scipy.stats.mannwhitneyu(x, y, method="exact").pvalue
    np.testing.assert_allclose(got, expected)


@given(
    st.lists(st.integers(0, 2), min_size=4, max_size=7), SIZES.filter(lambda x: x < 4)
)
def test_it_counts_the_assignments_that_are_as_uneven(scores, m):
    def unevenness(chosen):
        x = [scores[i] for i in chosen]
        y = [scores[i] for i in range(len(scores)) if i not in chosen]
        return abs(sum((a > b) + (a == b) / 2 - 0.5 for a in x for b in y))

    found = unevenness(range(m))
    every = [*itertools.combinations(range(len(scores)), m)]
    share = sum(unevenness(x) >= found - 1e-9 for x in every) / len(every)
    arguments = column(scores[:m]), column(scores[m:])
    np.testing.assert_allclose(rank_tests.p_value(*arguments), share)
    interval = rank_tests.improvement(*arguments)
    assert interval.lower <= interval.value <= interval.upper
    assert interval.p_value == rank_tests.p_value(*arguments)
