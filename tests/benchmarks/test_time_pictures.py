"""README's picture: its lines and dots are the runs."""

from benchmarks import time_pictures

CURVES = {
    "tfrl, cold": [[(2.0, 20.0), (3.0, 480.0)], [(2.5, 30.0), (4.0, 500.0)]],
    "tfrl, warm": [[]],  # A row from before curves were kept.
    "Stable-Baselines3": [[(5.0, 20.0), (20.0, 475.0)]],
    "TF-Agents": [[(9.0, 20.0), (90.0, 230.0)]],
}


def test_each_run_is_a_line_with_a_mark_that_says_how_it_ended(tmp_path):
    panel = time_pictures.Panel("DQN, CartPole-v1", 475.0, CURVES)
    for theme in time_pictures.THEMES.values():
        figure = time_pictures.draw([panel, panel], theme)
        axes = figure.axes[1]
        score, *lines = axes.get_lines()
        assert list(score.get_ydata()) == [475.0, 475.0]
        curves = [list(zip(*line.get_data(), strict=True)) for line in lines]
        assert curves[::2] == [c for each in CURVES.values() for c in each if c]
        marks = [(line.get_marker(), line.get_xdata()[0]) for line in lines[1::2]]
        assert marks == [("o", 3.0), ("o", 4.0), ("o", 20.0), ("x", 90.0)]
    paths = [tmp_path / name for name in ("one.svg", "two.svg")]
    for path in paths:
        time_pictures.save(time_pictures.draw([panel, panel], theme), path)
    assert paths[0].read_bytes() == paths[1].read_bytes()
    assert b"<svg" in paths[0].read_bytes()
