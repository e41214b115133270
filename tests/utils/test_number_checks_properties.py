"""Any value of an argument passes its check, or the error names the argument."""

import math
import numbers

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests import properties
from tfrl.utils import number_checks

VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.sampled_from([-1.5, 0, 1.0]),
    st.integers(-2, 2),
    st.integers(),
    st.floats(),
    properties.TEXTS,
    st.fractions(),
    st.complex_numbers(),
    st.lists(st.integers(), max_size=2),
    st.floats(width=32).map(np.float32),
    st.integers(0, 255).map(np.uint8),
)
# Some of which are values, too.
LIMITS = st.sampled_from([-math.inf, -1.5, 0.0, 1.0, math.inf])


def told(check, *arguments, **keywords):
    """The type of the error of a check, whose text names all that it should."""
    try:
        check("size", *arguments, remedy="raise it", **keywords)
    except (TypeError, ValueError) as error:
        text = str(error)
        assert text.startswith("size: expected ")
        assert ", got " in text
        assert text.endswith("; raise it.")
        return type(error)
    return None


@example(1.0, 0.0, 1.0, False, True, False)
@given(VALUES, LIMITS, LIMITS, st.booleans(), st.booleans(), st.booleans())
def test_a_number_passes_only_within_its_range(
    value, low, high, without_low, without_high, optional
):
    found = told(
        number_checks.check_number,
        value,
        low,
        high,
        excludes_low=without_low,
        excludes_high=without_high,
        optional=optional,
    )
    if value is None and optional:
        assert found is None
    elif not isinstance(value, numbers.Real):
        assert found is TypeError
    else:
        number = float(value)
        is_inside = (low < number if without_low else low <= number) and (
            number < high if without_high else number <= high
        )
        is_right = is_inside and math.isfinite(number)
        assert found is (None if is_right else ValueError)


@given(VALUES, st.integers(-2, 2), st.integers(-2, 2) | st.none())
def test_an_integer_passes_only_within_its_range(value, low, high):
    found = told(number_checks.check_integer, value, low, high)
    if isinstance(value, bool) or not isinstance(value, numbers.Integral):
        assert found is TypeError
    else:
        is_right = low <= value and (high is None or value <= high)
        assert found is (None if is_right else ValueError)


@given(VALUES)
def test_sizes_are_positive_integers(value):
    if isinstance(value, numbers.Integral) and value > 0 and value is not True:
        number_checks.check_sizes(size=value)
        return
    with pytest.raises((TypeError, ValueError), match=r"^size: expected an integer"):
        number_checks.check_sizes(size=value)
