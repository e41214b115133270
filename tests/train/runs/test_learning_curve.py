import imageio.v2 as imageio
import numpy as np
import pytest

from tfrl.train.runs import learning_curve

HEADER = (
    "iteration,environment_steps,average_return,evaluation_return,evaluation_return_std"
)


def draw(tmp_path, rows):
    path = tmp_path / "metrics.csv"
    path.write_text("\n".join([HEADER, *rows]) + "\n")
    output = tmp_path / "curve.png"
    learning_curve.plot_learning_curve(path, output, "a title")
    return imageio.imread(output)


def count_blue(picture):
    red, green, blue = (picture[..., i].astype(int) for i in range(3))
    return int(np.sum((blue > 150) & (red < 80) & (green < 150)))


def test_the_curve_is_drawn_from_the_rows_that_have_it(tmp_path):
    rows = ["0,0,,10,1", "5,50,12,,", "10,100,20,30,2"]
    picture = draw(tmp_path, rows)
    assert picture.shape[0] > 300
    assert count_blue(picture) > count_blue(draw(tmp_path, rows[:2]))


def test_no_rows_give_an_empty_plot(tmp_path):
    assert draw(tmp_path, []).shape[1] > 500


def test_no_half_written_file_is_left(tmp_path):
    draw(tmp_path, ["0,0,1,10,1"])
    assert sorted(p.name for p in tmp_path.iterdir()) == ["curve.png", "metrics.csv"]


def test_metrics_that_are_not_text_are_an_error_that_names_the_file(tmp_path):
    metrics = tmp_path / "metrics.csv"
    metrics.write_bytes(b"\xff\n")
    with pytest.raises(ValueError, match=r"metrics.csv: cannot be read"):
        learning_curve.plot_learning_curve(metrics, tmp_path / "curve.png")
    metrics.write_text("environment_steps,average_return\nmany,few\n1,2\n")
    learning_curve.plot_learning_curve(metrics, tmp_path / "curve.png")
