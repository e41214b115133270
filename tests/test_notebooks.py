"""The notebooks of `docs/tutorials` run, and have the outputs that they show."""

import base64
import importlib
import json
import pathlib
import re
import runpy
import sys

import pytest

from tests import listings
from tests.test_documentation import anchors
from tests.test_repository import ARCHAISMS, COINAGES

REPOSITORY = pathlib.Path(__file__).resolve().parents[1]
TUTORIALS = REPOSITORY / "docs" / "tutorials"
NOTEBOOKS = sorted(TUTORIALS.glob("*.ipynb"))
MOST_BYTES = 60_000  # Of a picture.
# What a notebook's programs reach.
LEARNED = {
    "compiled_training": ["compiled.info().average_return >= 80"],
    "broken_run": [
        "[finding.rule for finding in broken.health()] == ['learning', 'targets']",
        "mended.evaluate(20).mean >= 200",
    ],
    "dqn": ["max(returns) >= 150", "dqn.evaluate(20).mean >= 200"],
    "c51": ["max(curve) >= 200", "values[0, 1] > values[-1, 1]"],
    "hundred_seeds": ["np.median(final) >= 150", "final.size == 100"],
    "kill_and_resume": ["process.returncode == -9", "all(same)"],
    "reinforce": ["max(curve) >= 100", "noises['fitted'] < 0.7 * noises['none']"],
    # Untrained, it gets about -1,500.
    "sac_actor_learner": ["max(value for _, value in curve) >= -400"],
    "lockstep": ["all(same)", "column('second', 'average_return')[1][-1] >= 80"],
}

every_notebook = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)


def read(path):
    return json.loads(path.read_text())


def notebooks_reader():
    """Returns nbformat; without it, a test of a notebook fails, and is not skipped."""
    try:
        importlib.import_module("nbclient")
        return importlib.import_module("nbformat")
    except ImportError as error:
        pytest.fail(
            f"{error}. Notebooks need the extra docs: pip install -e '.[test,docs]'."
        )


def cells(path, kind):
    return [cell for cell in read(path)["cells"] if cell["cell_type"] == kind]


def text_of(cell):
    return "".join(cell["source"])


def outputs_of(path):
    return [output for cell in cells(path, "code") for output in cell["outputs"]]


def texts(cell):
    """What a cell has printed, and the values that it shows, but no pictures."""
    streams = {"stdout": "", "stderr": "", None: ""}
    for output in cell["outputs"]:
        data = output.get("data", {})
        if output["output_type"] == "stream":
            streams[output["name"]] += "".join(output["text"])
        elif "image/png" not in data:
            streams[None] += "".join(data.get("text/plain", ""))
    text = "".join(streams.values())
    if "varies" in cell["metadata"].get("tags", []):
        words = re.sub(r"-?\d[\d,.e+-]*", "#", text)
        lines = [re.sub(r"[\s.]+", " ", line).strip() for line in words.splitlines()]
        return "\n".join(dict.fromkeys(lines))  # Lines that differ in numbers are one.
    return text


@every_notebook
def test_a_notebook_has_outputs_and_no_errors(path):
    notebook = read(path)
    assert (notebook["nbformat"], notebook["nbformat_minor"]) == (4, 5)
    assert notebook["metadata"]["kernelspec"]["name"] == "python3"
    for number, cell in enumerate(notebook["cells"], 1):
        assert cell["id"] == f"cell-{number}"
        assert set(cell["metadata"]) <= {"tags"}
    counts = [cell["execution_count"] for cell in cells(path, "code")]
    assert counts == list(range(1, len(counts) + 1)), "run docs/tools/run_notebooks.py"
    outputs = outputs_of(path)
    assert outputs
    assert not [x for x in outputs if x["output_type"] == "error"]


@every_notebook
def test_a_notebook_shows_small_pictures_no_paths_and_no_noise(path):
    for output in outputs_of(path):
        picture = "".join(output.get("data", {}).get("image/png", ""))
        assert len(base64.b64decode(picture)) <= MOST_BYTES
    shown = "".join(texts(cell) for cell in cells(path, "code"))
    assert not re.search(r"(?<![\w.])/(?:home|opt|root|tmp|usr|work|Users)\b", shown)
    assert not re.search(r"Warning|INFO:|WARNING:|0000 00:00:|\r", shown)


@every_notebook
def test_a_notebook_names_what_exists(path):
    code = "\n".join(text_of(cell) for cell in cells(path, "code"))
    assert listings.faults(code, path) == []


@every_notebook
def test_a_notebook_has_a_beginning_an_end_and_plain_words(path):
    notes = [text_of(cell) for cell in cells(path, "markdown")]
    assert re.match(r"# \w.*\n\nIn this tutorial you .*\bminute", notes[0], re.DOTALL)
    assert "## Where to go next\n\n- " in notes[-1]
    avoided = "|".join(word.replace(" ", r"\s+") for word in ARCHAISMS + COINAGES)
    text = re.sub(r"`[^`\n]*`", "", "\n".join(notes))
    assert re.findall(rf"\b(?:{avoided})\b", text, re.IGNORECASE) == []


@every_notebook
def test_links_of_a_notebook_lead_to_a_file_and_a_heading(path):
    broken = []
    for cell in cells(path, "markdown"):
        for link in re.findall(r"\]\(([^)\s]+)\)", text_of(cell)):
            target, _, anchor = link.partition("#")
            page = TUTORIALS / target
            missing = anchor and page.suffix == ".md" and anchor not in anchors(page)
            if not link.startswith("http") and (not page.is_file() or missing):
                broken.append(link)
    assert broken == []


def test_the_index_lists_every_notebook_once_with_a_line():
    index = (TUTORIALS / "index.md").read_text()
    links = re.findall(r"^\| \[.*?\]\((\w+)\.ipynb\) \| \S.*\|$", index, re.MULTILINE)
    assert sorted(links) == [path.stem for path in NOTEBOOKS]


def test_notebooks_without_their_extra_fail_with_the_line_to_type(monkeypatch):
    monkeypatch.setitem(sys.modules, "nbclient", None)
    with pytest.raises(pytest.fail.Exception, match=r"pip install -e '.\[test,docs\]'"):
        notebooks_reader()


@pytest.mark.slow
@pytest.mark.timeout(1800)
@every_notebook
def test_a_notebook_prints_what_it_shows(path):
    nbformat = notebooks_reader()
    run = runpy.run_path(str(REPOSITORY / "docs/tools/run_notebooks.py"))["run"]
    notebook = nbformat.read(path, as_version=4)
    asserts = [f"assert {expected}" for expected in LEARNED.get(path.stem, [])]
    notebook.cells.append(nbformat.v4.new_code_cell("\n".join(asserts)))
    run(notebook)
    now = [cell for cell in notebook.cells[:-1] if cell.cell_type == "code"]
    for shown, cell in zip(cells(path, "code"), now, strict=True):
        assert texts(cell) == texts(shown), text_of(shown)
