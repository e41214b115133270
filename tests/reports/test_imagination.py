"""What a world model predicts is drawn beside what was observed."""

import numpy as np
import pytest

from tfrl.reports import imagination

RNG = np.random.default_rng(3)


def test_each_number_of_vectors_is_two_lines():
    observed, predicted = RNG.normal(size=[2, 12, 3])
    figure = imagination.draw([(observed, predicted)], 5)
    assert len(figure.axes) == 3
    for i, axes in enumerate(figure.axes):
        one, other = axes.get_lines()
        np.testing.assert_array_equal(one.get_ydata(), observed[:, i])
        np.testing.assert_array_equal(other.get_ydata(), predicted[:, i])


@pytest.mark.parametrize("channels", [1, 3, 4])
def test_images_are_two_rows_of_ten_frames_over_all_steps(channels):
    observed, predicted = RNG.uniform(-0.1, 1.1, size=[2, 25, 4, 6, channels])
    figure = imagination.draw([(observed, predicted)], 5)
    assert len(figure.axes) == 20
    titles = [axes.get_title() for axes in figure.axes[:10]]
    assert titles[:2] == ["given", "given"]
    assert titles[-1] == "step 24"
    last = figure.axes[-1].get_images()[0].get_array()
    expected = predicted[24]
    if channels != 3:
        expected = np.repeat(expected.mean(-1, keepdims=True), 3, -1)
    np.testing.assert_allclose(last, np.clip(expected, 0, 1))


def test_images_and_vectors_are_in_one_figure():
    image = RNG.uniform(size=[2, 8, 4, 4, 3])
    vector = RNG.normal(size=[2, 8, 20])
    figure = imagination.draw([tuple(vector), tuple(image)], 5)
    # Of long vectors the first six numbers.
    assert len(figure.axes) == 2 * 8 + 6
