"""Values of settings that their checks allow, for any algorithm."""

import math

import hypothesis
from hypothesis import strategies as st

from tfrl.algorithms import registry, settings
from tfrl.utils import number_checks

NAMES = st.sampled_from([*registry.CLASSES])
_SIZES = st.lists(st.integers(1, 2**31 - 1), max_size=3).map(tuple)
_CONVOLUTIONS = st.lists(st.tuples(*[st.integers(1, 99)] * 3), max_size=3).map(tuple)


def _number(
    low=-math.inf,
    high=math.inf,
    excludes_low=False,
    excludes_high=False,
    optional=False,
):
    least = None if low == -math.inf else low
    most = None if high == math.inf else high
    numbers = st.floats(
        least,
        most,
        exclude_min=excludes_low and least is not None,
        exclude_max=excludes_high and most is not None,
        allow_nan=False,
        allow_infinity=False,
    )
    return numbers | st.none() if optional else numbers


def values_of(field):
    """The values of a setting, found by its check."""
    check = field.metadata["check"]
    if check is None:
        return st.just(field.default)
    limits = getattr(check, "keywords", {})
    function = getattr(check, "func", check)
    if function is number_checks.check_integer:
        return st.integers(limits["minimum"], limits["maximum"])
    if function is number_checks.check_number:
        return _number(**limits)
    if function is number_checks.check_choice:
        return st.sampled_from([*limits["choices"]])
    return {
        settings.check_truth: st.booleans(),
        settings.check_layers: _SIZES,
        settings.check_convolutions: _CONVOLUTIONS,
        settings.check_rate: _number(0.0),
    }.get(function, st.just(field.default))


@st.composite
def changed(draw, kind):
    """Draws other values of some settings of an algorithm."""
    fields = kind.setting_fields()
    names = draw(st.lists(st.sampled_from([*fields]), max_size=6, unique=True))
    values = {name: draw(values_of(fields[name])) for name in names}
    for name, value in values.items():
        hypothesis.note(f"{name}={value!r}")
        kind.check_setting(name, value)
    return values
