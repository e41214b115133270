"""Pairs of parameters that do not depend on each other."""

import pytest


def pairs(some, others):
    """Returns all pairs as parameters, the fast ones with each value of both.

    The other pairs are slow.
    """
    some, others = list(some), list(others)
    number = max(len(some), len(others))
    fast = {(i % len(some), i % len(others)) for i in range(number)}
    return [
        pytest.param(one, other, marks=[] if (i, j) in fast else [pytest.mark.slow])
        for i, one in enumerate(some)
        for j, other in enumerate(others)
    ]
