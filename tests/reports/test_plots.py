"""Pictures of curves, profiles and probabilities of improvement."""

import numpy as np
import pytest
from matplotlib.figure import Figure

from tfrl.eval.statistics import Estimate
from tfrl.reports import plots


@pytest.fixture
def axes():
    return Figure().subplots()


def outline(band):
    """The corners of a band, `[num_corners, 2]`."""
    return np.unique(band.get_paths()[0].vertices, axis=0).tolist()


def test_a_curve_is_a_line_in_its_band(axes):
    curve = Estimate(np.array([1.0, 3.0]), np.array([0.0, 2.0]), np.array([2.0, 5.0]))
    plots.plot_curve(axes, [0, 10], curve, "one", "C3")
    plots.plot_curve(axes, [0, 10], curve)
    (line, _), (band, _) = axes.lines, axes.collections
    np.testing.assert_array_equal(line.get_data(), [[0, 10], [1, 3]])
    assert (line.get_label(), line.get_color()) == ("one", "C3")
    assert outline(band) == [[0, 0], [0, 2], [10, 2], [10, 5]]


def test_one_evaluation_is_a_dot_with_its_interval(axes):
    curve = Estimate(np.array([3.0]), np.array([2.0]), np.array([5.0]))
    plots.plot_curve(axes, [10], curve, "one", "C3")
    (line,), (interval,) = axes.lines, axes.collections
    assert line.get_marker() == "o"
    assert interval.get_segments()[0].tolist() == [[10, 2], [10, 5]]


def test_profiles_are_steps_in_their_bands(axes):
    one = Estimate(np.array([1, 0.5, 0]), np.array([1, 0.2, 0]), np.array([1, 0.8, 0]))
    two = Estimate(np.array([0.9, 0.9, 0.1]), np.zeros(3), np.ones(3))
    plots.plot_performance_profiles(axes, [0, 10, 20], {"one": one, "two": two})
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["one", "two"]
    for line, profile in zip(axes.lines, (one, two), strict=True):
        np.testing.assert_array_equal(line.get_xdata(), [0, 10, 20])
        np.testing.assert_array_equal(line.get_ydata(), profile.value)
        assert line.get_drawstyle() == "steps-post"
    first, second = axes.collections
    # The band of a step goes on to the next threshold, and ends there.
    assert outline(first) == [
        [0, 1],
        [10, 0.2],
        [10, 0.8],
        [10, 1],
        [20, 0],
        [20, 0.2],
        [20, 0.8],
    ]
    assert outline(second) == [[0, 0], [0, 1], [10, 0], [10, 1], [20, 0], [20, 1]]


def test_a_profile_at_other_thresholds_is_refused(axes):
    profile = Estimate(*np.zeros((3, 4)))
    with pytest.raises(
        ValueError, match=r"profiles\['SAC'\]: got shape \(4,\), .*\(2,\)"
    ):
        plots.plot_performance_profiles(axes, [0, 1], {"SAC": profile})


def test_improvements_are_rows_from_top_to_bottom(axes):
    improvements = {
        "SAC over TD3": Estimate(0.7, 0.4, 0.9),
        "IQL over BC": Estimate(1.0, 1.0, 1.0),
    }
    plots.plot_probability_of_improvement(axes, improvements)
    labels = [label.get_text() for label in axes.get_yticklabels()]
    assert labels == ["SAC over TD3", "IQL over BC"]
    bottom, top = axes.get_ylim()
    assert bottom > 1 > 0 > top
    drawn = [np.array(line.get_data()).T.tolist() for line in axes.lines]
    assert drawn[:4] == [
        [[0.4, 0], [0.9, 0]],
        [[0.7, 0]],
        [[1, 1], [1, 1]],
        [[1, 1]],
    ]
    assert list(axes.lines[4].get_xdata()) == [0.5, 0.5]


def test_ticks_are_few_and_short(axes):
    axes.set_xlim(0, 1_000_000)
    plots.shorten_ticks(axes)
    axes.figure.draw_without_rendering()
    labels = [label.get_text() for label in axes.get_xticklabels()]
    assert labels == ["0", "200k", "400k", "600k", "800k", "1M"]
