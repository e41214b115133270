import pytest

from tfrl.train.loops import training_loop
from tfrl.train.runs import run_length


def info(iteration, steps):
    return training_loop.IterationInfo(iteration, iteration, steps, 3, 21.5, 0.1)


class Loop:
    """The part of a loop that a length asks."""

    def __init__(self, most_steps_per_iteration):
        self.most_steps_per_iteration = most_steps_per_iteration


@pytest.mark.parametrize(
    ("iterations", "steps", "message"),
    [
        (None, None, "expected exactly one of them, got neither"),
        (5, 5, "expected exactly one of them, got both"),
        (0, None, "num_iterations: expected an integer of at least 1, got 0"),
        (None, 0, "num_environment_steps: expected an integer of at least 1, got 0"),
        (2.5, None, "num_iterations: expected an integer of at least 1, got 2.5"),
    ],
)
def test_a_length_is_one_positive_number(iterations, steps, message):
    with pytest.raises((ValueError, TypeError), match=message):
        run_length.RunLength(iterations, steps).check(Loop(8))


def test_a_loop_without_an_environment_has_no_length_in_steps():
    run_length.RunLength(5, None).check(Loop(0))
    with pytest.raises(ValueError, match=r"got 5, but Loop steps no environment"):
        run_length.RunLength(None, 5).check(Loop(0))


def test_iterations_are_done_until_the_steps_could_be_reached():
    """95 are left: 11 iterations of at most 8 take 88, and then one at a time."""
    length = run_length.RunLength(None, 100)
    assert length.iterations_left(info(1, 5), 8) == 11
    assert length.iterations_left(info(12, 93), 8) == 1
    assert length.iterations_left(info(1, 5), None) == 1
    assert not length.is_reached(info(12, 99))
    assert length.is_reached(info(13, 100))
    assert length.is_reached(info(13, 107))
