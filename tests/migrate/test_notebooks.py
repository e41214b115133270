"""Notebooks in `tfrl migrate`: their code changes, and nothing else of them."""

import json

import pytest

from tfrl.migrate import programs

CELLS = [
    "!pip install tf-agents \\\n  gym\n%matplotlib inline\n"
    "import gym\nimport tf_agents",
    "%%bash\necho import gym",
    "%%time\nif True:\n  !ls\n  env = gym.make('A-v1')\nfiles = !ls\nenv.reset?",
    "this is no Python",
    "obs = env.reset()\nobs, r, d, i = env.step(0)",
    "",
]
EXPECTED = [
    CELLS[0]
    .replace("import gym", "import gymnasium as gym")
    .replace("tf_agents", "tfrl"),
    CELLS[1],
    CELLS[2],
    CELLS[3],
    "obs, _ = env.reset()\nobs, r, terminated, truncated, i = env.step(0)\n"
    "d = terminated or truncated",
    "",
]


def notebook(cells, as_text=False):
    return {
        "cells": [
            {
                "cell_type": "markdown",
                "metadata": {},
                "source": ["import gym & <b>é\n"],
            },
            *(
                {
                    "cell_type": "code",
                    "metadata": {"id": "x"},
                    "outputs": [{"text": ["import gym\n"], "x": 1e-07}],
                    "source": cell if as_text else cell.splitlines(keepends=True),
                }
                for cell in cells
            ),
        ],
        "nbformat": 4,
    }


@pytest.mark.parametrize(
    ("form", "as_text"),
    [
        ({"indent": 1}, False),
        ({"indent": 4, "ensure_ascii": False}, False),
        ({}, True),
        ({"separators": (",", ":"), "ensure_ascii": False}, False),
    ],
)
def test_only_the_cells_of_python_change(tmp_path, form, as_text):
    path = tmp_path / "a.ipynb"
    text = json.dumps(notebook(CELLS, as_text), **form).replace("<", "\\u003c")
    path.write_text(f"{text}\n\n")
    (result,) = programs.migrate([path])
    expected = json.dumps(notebook(EXPECTED, as_text), **form).replace("<", "\\u003c")
    assert json.loads(result.text) == json.loads(expected)
    if "separators" not in form:
        assert result.text == f"{expected}\n\n"
    assert [x[:2] for x in result.notes] == [("cell 5", "unread")]
    assert result.changes["gym-calls"] == ["cell 6:1", "cell 6:2"]
    assert "+obs, _ = env.reset()\n" in result.diff
    path.write_text(result.text)
    assert not programs.migrate([path])[0].is_changed


@pytest.mark.parametrize("text", ["", "[]", '{"worksheets": []}', "[" * 100_000])
def test_another_format_is_told(tmp_path, text):
    path = tmp_path / "a.ipynb"
    path.write_text(text)
    assert "no notebook of format 4" in programs.migrate([path])[0].reason


def test_a_line_that_chooses_keras_2_is_told(tmp_path):
    path = tmp_path / "a.ipynb"
    cell = "%env TF_USE_LEGACY_KERAS=1\nimport tf_agents"
    path.write_text(json.dumps(notebook([cell])))
    (result,) = programs.migrate([path])
    (note,) = result.notes
    assert note[2] == "delete the line %env TF_USE_LEGACY_KERAS=1"
