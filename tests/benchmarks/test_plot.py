from benchmarks import plot, report


def _result(contenders):
    series = [report.Series(f"{i}", [1.0 + i, 2.0 + i]) for i in range(contenders)]
    return report.Result("dqn", "the loop", "iterations/s", series, ("0",))


def test_the_plot_is_written(tmp_path):
    path = tmp_path / "plot.png"
    plot.draw([_result(2), _result(0), _result(5), _result(1), _result(3)], path)
    assert path.read_bytes().startswith(b"\x89PNG")


def test_nothing_measured_makes_no_plot(tmp_path):
    path = tmp_path / "plot.png"
    plot.draw([_result(0)], path)
    assert not path.exists()
