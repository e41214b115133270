"""Parameters of tests, some of them slow."""

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


def some_slow(values, *, slow=None, fast=()):
    """Returns values as parameters: the ones in `slow`, or not in `fast`, are slow."""

    def is_slow(value):
        return value not in fast if slow is None else value in slow

    return [pytest.param(v, marks=[pytest.mark.slow] * is_slow(v)) for v in values]
