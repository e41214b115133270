import subprocess
import sys

import keras
import numpy as np
import pytest
import tensorflow as tf

from tfrl.utils import number_checks

schedules = keras.optimizers.schedules


def check(value, *bounds, **options):
    number_checks.check_number("gamma", value, *bounds, remedy="lower it", **options)


@pytest.mark.parametrize("value", [0, 1, 0.5, np.float32(0.5), np.int64(1), True])
def test_numbers_in_range_pass(value):
    check(value, 0.0, 1.0)


@pytest.mark.parametrize("value", [2, -1, 1.0001, float("nan"), float("inf")])
def test_numbers_out_of_range_are_named_with_range_and_remedy(value):
    with pytest.raises(
        ValueError,
        match=rf"^gamma: expected a number in \[0, 1\], got {float(value)}; lower it",
    ):
        check(value, 0.0, 1.0)


@pytest.mark.parametrize(
    ("value", "bounds", "options", "expected"),
    [
        (-1, [0.0], {}, "a finite number of at least 0"),
        (float("inf"), [0.0], {}, "a finite number of at least 0"),
        (0, [0.0], {"excludes_low": True}, "a finite number above 0"),
        (float("nan"), [], {}, "a finite number"),
    ],
)
def test_ranges_without_an_end_are_finite(value, bounds, options, expected):
    with pytest.raises(ValueError, match=f"^gamma: expected {expected}, got "):
        check(value, *bounds, **options)


@pytest.mark.parametrize("value", ["0.9", None, [0.9], {}])
def test_what_is_not_a_number_is_named_with_its_type(value):
    kind = type(value).__name__
    with pytest.raises(
        TypeError, match=rf"^gamma: expected a number in .* of type {kind}; lower it\.$"
    ):
        check(value, 0.0, 1.0)


@pytest.mark.parametrize(
    ("schedule", "got"),
    [
        (schedules.PolynomialDecay(2.0, 10, 0.0), "2.0 as initial_learning_rate"),
        (schedules.PolynomialDecay(0.5, 10, -1.0), "-1.0 as end_learning_rate"),
        (schedules.PiecewiseConstantDecay([1], [0.5, 3.0]), "3.0 as values"),
        (
            schedules.CosineDecay(0.1, 9, warmup_target=4.0, warmup_steps=2),
            "4.0 as warmup_target",
        ),
    ],
)
def test_values_of_a_schedule_are_checked(schedule, got):
    with pytest.raises(
        ValueError, match=f"got {got} of the schedule {type(schedule).__name__}; "
    ):
        check(schedule, 0.0, 1.0)


class Undescribed(schedules.LearningRateSchedule):
    def __call__(self, step):
        return step


@pytest.mark.parametrize(
    "value",
    [
        tf.constant(5.0),
        tf.Variable(5.0),
        lambda: 5.0,
        Undescribed(),
        schedules.PolynomialDecay(1.0, 10, 0.0),
    ],
)
def test_what_cannot_be_known_passes(value):
    check(value, 0.0, 1.0)


def test_integers():
    number_checks.check_integer("n", np.int32(1), 1, remedy="raise it")
    number_checks.check_integer("n", tf.constant(0), 1, remedy="raise it")
    with pytest.raises(
        ValueError, match=r"^n: expected an integer of at least 1, got 0; raise it\.$"
    ):
        number_checks.check_integer("n", 0, 1, remedy="raise it")
    for value in (1.5, 2.0, np.float64(2), "2", None, True):
        with pytest.raises(TypeError, match=r"^n: expected an integer .* of type "):
            number_checks.check_integer("n", value, 1, remedy="raise it")


def test_integers_may_have_a_maximum():
    number_checks.check_integer("n", 5, 1, 5, remedy="mend it")
    for value in (0, 6):
        with pytest.raises(
            ValueError, match=rf"^n: expected an integer in \[1, 5\], got {value}; mend"
        ):
            number_checks.check_integer("n", value, 1, 5, remedy="mend it")


@pytest.mark.parametrize(
    ("options", "expected", "refused"),
    [
        ({}, r"\[0, 1\]", (-0.1, 1.1)),
        ({"excludes_low": True}, r"\(0, 1\]", (0, 1.1)),
        ({"excludes_high": True}, r"\[0, 1\)", (-0.1, 1)),
        ({"excludes_low": True, "excludes_high": True}, r"\(0, 1\)", (0, 1)),
    ],
)
def test_ends_of_a_range_may_be_excluded(options, expected, refused):
    check(0.5, 0.0, 1.0, **options)
    for value in refused:
        with pytest.raises(
            ValueError, match=f"^gamma: expected a number in {expected}"
        ):
            check(value, 0.0, 1.0, **options)


def test_none_passes_only_where_it_is_optional():
    number_checks.check_integer("n", None, 1, remedy="raise it", optional=True)
    check(None, 0.0, optional=True)
    with pytest.raises(ValueError, match="of at least 1 or None, got 0; raise it"):
        number_checks.check_integer("n", 0, 1, remedy="raise it", optional=True)


def test_sizes_are_positive_integers():
    number_checks.check_sizes(height=2, width=1)
    number_checks.check_sizes(optional=True, height=None, width=1)
    with pytest.raises(ValueError, match=r"^width: expected .* at least 1, got 0; "):
        number_checks.check_sizes(height=2, width=0)


def test_environment_workers_can_import_it_without_tensorflow():
    code = "import sys, tfrl.utils.number_checks; print('tensorflow' in sys.modules)"
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert result.stdout == "False\n"


def test_a_batch_size_of_none_is_that_of_a_python_environment():
    with pytest.raises(
        TypeError, match=r"none: write TFPyEnvironment\(environment\)\.b"
    ):
        number_checks.check_sizes(batch_size=None)
    with pytest.raises(ValueError, match=r"got 0; raise it, or leave it out\.$"):
        number_checks.check_sizes(optional=True, batch_size=None, num_steps=0)
