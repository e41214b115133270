"""Items of the adder of n-step transitions against sums written out."""

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tests import properties
from tests.acme.adders import episodes
from tfrl.acme.adders import reverb as adders
from tfrl.acme.adders.reverb import transition

NUMBERS = st.lists(properties.FLOATS, min_size=1, max_size=6)
DISCOUNTS = st.sampled_from([0.0, 0.25, 0.5, 1.0])


def sum_of(rewards, discounts, gamma):
    """Returns the return and the discount of steps, each term by itself."""
    terms = [
        reward * gamma**i * math.prod(discounts[:i]) for i, reward in enumerate(rewards)
    ]
    return sum(terms), gamma ** (len(rewards) - 1) * math.prod(discounts)


@given(st.data(), NUMBERS, DISCOUNTS)
def test_the_return_is_the_sum_written_out(data, rewards, gamma):
    number = len(rewards)
    discounts = data.draw(st.lists(DISCOUNTS, min_size=number, max_size=number))
    total, discount = transition.n_step_return(
        episodes.floats(*rewards), episodes.floats(*discounts), gamma
    )
    np.testing.assert_allclose(
        (total, discount), sum_of(rewards, discounts, gamma), rtol=1e-4, atol=1e-3
    )
    # The same for a nest of rewards, with one discount.
    (first, second), _ = transition.n_step_return(
        [(np.float32(x), np.float32(-x)) for x in rewards],
        episodes.floats(*discounts),
        gamma,
    )
    assert (first, second) == (total, -total)


@given(
    st.lists(NUMBERS, min_size=1, max_size=3),
    st.integers(1, 4),
    st.booleans(),
    st.sampled_from([0.5, 1.0]),
)
def test_items_are_all_transitions_of_up_to_n_steps(
    client, drain, rewards, n, is_truncated, discount
):
    adder = adders.NStepTransitionAdder(client, n, 0.5)
    expected = []
    for each in rewards:
        steps = episodes.time_steps(
            episodes.floats(*each), is_truncated=is_truncated, discount=discount
        )
        episodes.add_episode(adder, steps)
        length = len(each)
        discounts = [discount] * (length - 1) + [discount * is_truncated]
        spans = [(max(0, end - n), end) for end in range(1, length + 1)]
        first = max(0, length - n)
        spans += [(start, length) for start in range(first + 1, length)]
        for start, end in spans:
            total, product = sum_of(each[start:end], discounts[start:end], 0.5)
            expected.append([start, 10 + start, total, product, end])
    got = [[leaf.item() for leaf in item] for item in drain()]
    np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-3)
