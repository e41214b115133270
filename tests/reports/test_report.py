"""Reports of runs whose rows are made by hand."""

import html.parser
import json
import xml.etree.ElementTree

import pytest

from tests.reports.test_health import healthy_rows
from tfrl.reports import evidence, figures, report


def write_run(folder, rows, **settings):
    folder.mkdir()
    config = {"algorithm": "dqn", "env": "CartPole-v1", "seed": 0, **settings}
    (folder / "config.json").write_text(json.dumps(config))
    lines = "".join(json.dumps(row) + "\n" for row in rows)
    (folder / "diagnostics.jsonl").write_text(lines + '{"iteration": 13, "lo')
    return folder


class _Page(html.parser.HTMLParser):
    """Collects the addresses and the tags of a page."""

    def __init__(self):
        super().__init__()
        self.addresses, self.tags = [], []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.addresses += [v for k, v in attrs if k in ("src", "href", "xlink:href")]


def test_a_report_is_one_file_with_figures_findings_and_settings(tmp_path):
    rows = healthy_rows()
    rows[0]["versions"] = {"tensorflow": "2.21.0"}
    rows[-1] |= {"training_seconds": 9.0, "environment_seconds": 4.0}
    for row in rows:
        row["dormant_units"] = 0.9
    folder = write_run(tmp_path / "run", rows, gamma=0.9, batch_size=64)
    (folder / "agent.mp4").write_bytes(b"film")
    path = folder / "report.html"
    (finding,) = report.write([folder], path, {"gamma": 0.99, "batch_size": 64})
    assert finding.rule == "units"
    text = path.read_text()
    page = _Page()
    page.feed(text)
    assert all(x.startswith(("#", "data:video/mp4;base64,")) for x in page.addresses)
    assert "script" not in page.tags
    assert "link" not in page.tags
    assert page.tags.count("svg") >= 10
    for words in ("90% of the hidden units", "Sokar", "DQN on CartPole-v1, seed 0"):
        assert words in text
    assert "<td><b>0.9</b></td>" in text  # gamma is not the default.
    assert "<td>64</td>" in text
    assert "tensorflow 2.21.0" in text
    assert "steps of the environment in Python 4.0" in text
    assert "the rest of collecting and training 5.0" in text


@pytest.mark.slow
def test_seeds_are_compared_in_a_report_of_several_runs(tmp_path):
    folders = [
        write_run(tmp_path / f"seed{seed}", healthy_rows(), seed=seed)
        for seed in range(2)
    ]
    flat = [{**row, "evaluation_return": 1.0} for row in healthy_rows()]
    folders.append(write_run(tmp_path / "seed2", flat, seed=2))
    findings = report.write(folders, tmp_path / "seeds.html")
    assert "seeds" in [each.rule for each in findings]
    assert "3 runs" in (tmp_path / "seeds.html").read_text()


def test_a_figure_has_the_unit_of_its_numbers_on_its_axis():
    units = {figure.title: figure.unit for figure in figures.FIGURES}
    assert (units["Returns"], units["Replay"]) == ("sum of rewards", "frames")
    assert units["Change of the policy in an update"] == ""  # Of two units.
    run = evidence.Evidence(healthy_rows(), {})
    assert ">sum of rewards</text>" in figures.draw(figures.FIGURES[0], [("run", run)])


def test_figures_are_svg_that_takes_the_pages_color():
    run = evidence.Evidence(healthy_rows(), {})
    drawn = figures.draw(figures.FIGURES[0], [("run", run)])
    root = xml.etree.ElementTree.fromstring(drawn)
    assert root.tag.endswith("svg")
    assert "width" not in root.attrib
    assert "currentColor" in drawn
    assert figures.draw(figures.FIGURES[0], [("x", evidence.Evidence([], {}))]) is None


def test_a_folder_without_a_run_is_refused(tmp_path):
    with pytest.raises(
        FileNotFoundError, match=r"config\.json, expected the folder of a run"
    ):
        report.write([tmp_path], tmp_path / "report.html")


def test_numbers_are_paired_where_both_were_measured():
    rows = [{"iteration": 1, "a": 2.0}, {"iteration": 2}, {"iteration": 3, "a": "nan"}]
    run = evidence.Evidence(rows, {"num_iterations": 6})
    assert run.column("a").tolist() == [[1.0, 2.0]]
    assert run.done() == 0.5
    assert run.late("a") is None
    assert run.late("a", least=1) == 2.0
