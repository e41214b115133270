"""Writes the model card of an exported policy: a page, with its curve and film."""

from __future__ import annotations

import html
import json
import pathlib
from collections.abc import Mapping
from typing import Any

import numpy as np

from tfrl.eval import statistics
from tfrl.reports import figures
from tfrl.reports.evidence import Evidence
from tfrl.system import files
from tfrl.train.runs import run_files

NAME = "README.md"
_CURVE, _FILM = "curve.svg", "agent.mp4"
_HEAD = "---\nlibrary_name: tfrl\n"
_LARGEST_FILM = 20_000_000  # Bytes.
# What each file of an export is, and what runs it.
_FILES = {
    "policy.onnx": "ONNX, for onnxruntime",
    "policy.tflite": "LiteRT, for ai_edge_litert; it takes one observation at a time",
    "policy.py": "Python code that needs only NumPy, with its arrays in policy.npz",
    "saved_model": "a SavedModel, for TensorFlow",
}


def is_card(path: pathlib.Path) -> bool:
    """Whether a file is a card that `write` wrote."""
    is_file = path.is_file() and not path.is_symlink()
    return is_file and path.read_bytes().startswith(_HEAD.encode())


def check_folder(folder: pathlib.Path) -> None:
    """Raises a ValueError if a card or its pictures would replace other files."""
    names = [x for x in (NAME, _CURVE, _FILM) if (folder / x).exists()]
    if names and not is_card(folder / NAME):
        raise ValueError(
            f"--output: got {str(folder)!r}, whose {names[0]} is not of a model card; "
            "give another folder."
        )


def write(run: pathlib.Path, folder: pathlib.Path) -> pathlib.Path:
    """Writes the card of a run beside its exports, and returns its path.

    Args:
      run: The folder of the run.
      folder: The folder of the exports.

    Raises:
      ValueError: There is a file of the same name that is no card.
      RunDirectoryError: A file of the run cannot be read.
    """
    check_folder(folder)
    folder.mkdir(parents=True, exist_ok=True)
    rows = run_files.read_rows(run / "diagnostics.jsonl")
    evidence = Evidence(rows, run_files.read_config(run / "config.json"))
    settings = evidence.settings
    algorithm = str(settings.get("algorithm") or "policy")
    pictures: dict[str, bytes] = {}
    title = f"{algorithm.upper()} on {settings.get('env') or 'an own environment'}"
    sections = [
        _head(algorithm, str(settings.get("env") or "")),
        f"# {_plain(title)}",
        "A policy that tfrl trained. Each file was compared with the policy on 1,000 "
        "random observations.",
        _table("file", "what it is", _files(folder)),
        "## Returns",
        _returns(evidence),
        _curve(evidence, pictures),
        _film(run, pictures),
        "## Settings",
        _table("setting", "value", settings),
        "## Versions",
        _table("package", "version", _versions(evidence)),
    ]
    path = folder / NAME
    text = "\n\n".join(section for section in sections if section)
    # The card is first, since by it the pictures are known as ours.
    files.write_text(path, f"{text}\n", "backslashreplace")
    for name, content in pictures.items():
        files.write_bytes(folder / name, content)
    return path


def _head(algorithm: str, environment: str) -> str:
    """Returns the fields that the Hub reads; JSON's texts are YAML's."""
    tags = ["reinforcement-learning", algorithm, *[environment] * bool(environment)]
    return f"{_HEAD}pipeline_tag: reinforcement-learning\ntags: {json.dumps(tags)}\n---"


def _plain(value: Any) -> str:
    """Returns a text from a file, which a page shows as it is."""
    text = " ".join(str(value).split())
    for mark in "\\`*_[]|#!":
        text = text.replace(mark, f"\\{mark}")
    return html.escape(text, quote=False)


def _table(name: str, value: str, rows: Mapping[str, Any]) -> str:
    lines = [f"| {name} | {value} |", "|---|---|"]
    lines += [f"| {_plain(key)} | {_plain(x)} |" for key, x in rows.items()]
    return "\n".join(lines) if rows else "Not recorded."


def _files(folder: pathlib.Path) -> dict[str, str]:
    return {name: text for name, text in _FILES.items() if (folder / name).exists()}


def _returns(evidence: Evidence) -> str:
    """Returns a sentence about the best evaluation, whose policy is exported."""
    rows = [row for row in evidence.rows if row.get("evaluation_returns")]
    # The untrained policy is never saved as the best one.
    rows = [row for row in rows if row["iteration"]] or rows
    if not rows:
        return "Not evaluated."
    row = max(reversed(rows), key=lambda row: np.mean(row["evaluation_returns"]))
    returns = np.array(row["evaluation_returns"], np.float64)
    text = f"Mean return {returns.mean():.5g} of {len(returns)} episodes"
    if len(returns) > 1:
        low, high = statistics.mean_interval(returns)
        text += f", 95 % interval of the mean from {low:.5g} to {high:.5g}"
    steps = int(run_files.number(row, "environment_steps"))
    text += f", greedily, after {steps:,} steps of the environment."
    if len(rows) > 1:
        text += (
            f" It is the best of {len(rows)} evaluations, so that others of the same "
            "policy are likely to be lower."
        )
    return text


def _curve(evidence: Evidence, pictures: dict[str, bytes]) -> str:
    svg = figures.draw(figures.FIGURES[0], [("run", evidence)])
    if svg is None:
        return ""
    pictures[_CURVE] = svg.encode()
    return f"![The returns while it trained]({_CURVE})\n\n{figures.FIGURES[0].text}"


def _film(run: pathlib.Path, pictures: dict[str, bytes]) -> str:
    film = run_files.read_media(run / _FILM, _LARGEST_FILM)
    if film is None:
        return ""
    pictures[_FILM] = film
    return f'<video controls src="{_FILM}"></video>'


def _versions(evidence: Evidence) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for row in evidence.rows:
        versions = row.get("versions")
        found |= versions if isinstance(versions, dict) else {}
    return found
