"""Writes the report of runs: one HTML file that needs nothing else."""

from __future__ import annotations

import base64
import html
import os
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

from tfrl.reports import figures, health
from tfrl.reports.evidence import Evidence
from tfrl.system import files
from tfrl.train.runs import run_files

# By which a report is known as ours.
MARK = '<meta name="generator" content="tfrl">'
_LARGEST_FILM = 4_000_000  # Bytes: with it the file can be mailed.
_STYLE = """
:root { color-scheme: light dark; --back: #fff; --card: #f6f7f9; --ink: #1b1f24;
  --soft: #5b6470; --line: #d9dde3; --bad: #b42318; --good: #1a7f4b; }
@media (prefers-color-scheme: dark) { :root { --back: #14171b; --card: #1e2329;
  --ink: #e6e9ed; --soft: #9aa4b0; --line: #343b44; --bad: #ff8a7a; --good: #5fd39a; } }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 1.2rem; max-width: 76rem; background: var(--back);
  color: var(--ink); font: 16px/1.5 system-ui, sans-serif; }
h1 { font-size: 1.5rem; margin: .2rem 0; }
h2 { font-size: 1.15rem; margin: 2rem 0 .6rem; }
h3 { font-size: 1rem; margin: 0 0 .3rem; } p { margin: .3rem 0; }
.soft { color: var(--soft); font-size: .9rem; }
.grid { display: grid; gap: 1rem;
  grid-template-columns: repeat(auto-fit, minmax(min(24rem, 100%), 1fr)); }
.card { background: var(--card); border: 1px solid var(--line); border-radius: .5rem;
  padding: .9rem; min-width: 0; }
.card svg { width: 100%; height: auto; display: block; }
.bad { border-left: .3rem solid var(--bad); }
.good { border-left: .3rem solid var(--good); }
.facts { display: grid; gap: .8rem;
  grid-template-columns: repeat(auto-fit, minmax(8.5rem, 1fr)); }
.facts b { display: block; font-size: 1.25rem; }
table { border-collapse: collapse; width: 100%; font-size: .9rem; }
td, th { text-align: left; padding: .2rem .6rem .2rem 0; border-bottom: 1px solid
  var(--line); overflow-wrap: anywhere; vertical-align: top; }
video, img { width: 100%; max-width: 48rem; border-radius: .5rem; }
.bar { display: flex; height: 1.1rem; border-radius: .3rem; overflow: hidden; }
"""
_COLORS = ("#1f77b4", "#ff7f0e", "#2ca02c", "#9467bd")
_TRAINING = "collecting and training"
_PARTS = {
    "training_seconds": _TRAINING,
    "starting_seconds": "compiling and first steps",
    "evaluating_seconds": "evaluating",
}


def write(
    folders: Sequence[str | os.PathLike],
    path: str | os.PathLike,
    defaults: Mapping[str, Any] | None = None,
    evidence: Sequence[Evidence] | None = None,
) -> list[health.Finding]:
    """Writes a report of runs, and returns the findings about them.

    Args:
      folders: The folders of the runs; the figures show them together.
      path: The HTML file to write.
      defaults: The default of each setting; the report marks settings that differ.
      evidence: What the folders hold; None reads it.

    Raises:
      FileNotFoundError: A folder holds no run, or a run has measured nothing.
      RunDirectoryError: A file of a run cannot be read.
    """
    labels = [pathlib.Path(folder).name for folder in folders]
    if evidence is None:
        evidence = [Evidence.of_folder(folder) for folder in folders]
    runs = list(zip(labels, evidence, strict=True))
    findings = [(label, health.check(run)) for label, run in runs]
    together = health.check_seeds([run for _, run in runs])
    title = _title(runs)
    sections = [
        f"<h1>{html.escape(title)}</h1>",
        *(_facts(label, run, len(runs) > 1) for label, run in runs),
        "<h2>Findings</h2>",
        _findings([*findings, *([("all runs", together)] if together else [])]),
        "<h2>Figures</h2>",
        _figures(runs),
        *(_film(pathlib.Path(folder)) for folder in folders[:1]),
        *(_imagined(pathlib.Path(folder)) for folder in folders[:1]),
        "<h2>Seconds</h2>",
        *(_seconds(label, run) for label, run in runs),
        "<h2>Settings</h2>",
        _settings(runs, defaults or {}),
        "<h2>Versions</h2>",
        _versions(runs[0][1]),
    ]
    page = (
        f'<!doctype html>\n<html lang="en"><head>{MARK}<meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{html.escape(title)}</title><style>{_STYLE}</style></head>\n"
        "<body>\n" + "\n".join(sections) + "\n</body></html>\n"
    )
    # The name of a folder may be no text.
    files.write_text(path, page, "backslashreplace")
    return [each for _, some in findings for each in some] + together


def _title(runs: Sequence[tuple[str, Evidence]]) -> str:
    settings = runs[0][1].settings
    names = {
        f"{(run.settings.get('algorithm') or 'run').upper()} on "
        f"{run.settings.get('env')}"
        for _, run in runs
    }
    if len(names) > 1 or len(runs) > 1:
        return f"{', '.join(sorted(names))}: {len(runs)} runs"
    return f"{names.pop()}, seed {settings.get('seed', 0)}"


def _facts(label: str, run: Evidence, is_one_of_several: bool) -> str:
    returns = run.values("evaluation_return")
    # The untrained policy counts only if there is no other.
    trained = returns[1:] if len(returns) > 1 else returns
    facts = {
        "last return": f"{returns[-1]:.5g}" if len(returns) else "not evaluated",
        "best return": f"{trained.max():.5g}" if len(trained) else "",
        "environment steps": f"{run.last('environment_steps'):,}",
        "updates": f"{run.last('train_steps'):,}",
        "done": f"{run.done():.0%}",
    }
    cells = "".join(
        f"<div>{html.escape(name)}<b>{html.escape(value)}</b></div>"
        for name, value in facts.items()
        if value
    )
    title = f"<h3>{html.escape(label)}</h3>" if is_one_of_several else ""
    return f'<div class="card">{title}<div class="facts">{cells}</div></div>'


def _findings(findings: Sequence[tuple[str, Sequence[health.Finding]]]) -> str:
    cards = [
        f'<div class="card bad"><h3>{html.escape(each.rule)}: '
        f"{html.escape(each.text)}</h3><p>Try first: {html.escape(each.remedy)}</p>"
        f'<p class="soft">{html.escape(label)}: {html.escape(each.figure)} is '
        f"{each.value:.3g}, the bound {each.threshold:.3g} "
        f"({html.escape(each.source)}).</p></div>"
        for label, some in findings
        for each in some
    ]
    if not cards:
        cards = ['<div class="card good">No rule has found anything.</div>']
    return f'<div class="grid">{"".join(cards)}</div>'


def _figures(runs: Sequence[tuple[str, Evidence]]) -> str:
    drawn = [(figure, figures.draw(figure, runs)) for figure in figures.FIGURES]
    return (
        '<div class="grid">'
        + "".join(
            f'<div class="card"><h3>{html.escape(figure.title)}</h3>{svg}'
            f'<p class="soft">{html.escape(figure.text)}</p></div>'
            for figure, svg in drawn
            if svg is not None
        )
        + "</div>"
    )


def _film(folder: pathlib.Path) -> str:
    film = run_files.read_media(folder / "agent.mp4", _LARGEST_FILM)
    if film is None:
        return ""
    data = base64.b64encode(film).decode()
    return (
        "<h2>Film of the best policy</h2>"
        f'<video controls src="data:video/mp4;base64,{data}"></video>'
    )


def _imagined(folder: pathlib.Path) -> str:
    picture = run_files.read_media(folder / run_files.IMAGINED, _LARGEST_FILM)
    if picture is None:
        return ""
    data = base64.b64encode(picture).decode()
    return (
        "<h2>What the world model imagines</h2>"
        '<img alt="Observations and predictions" '
        f'src="data:image/png;base64,{data}">'
    )


def _seconds(label: str, run: Evidence) -> str:
    seconds = {words: run.last(name) for name, words in _PARTS.items()}
    # Compiled programs do not say how long the rest of collecting takes.
    if in_python := min(run.last("environment_seconds"), seconds[_TRAINING]):
        rest = seconds.pop(_TRAINING) - in_python
        seconds = {
            "steps of the environment in Python": in_python,
            "the rest of collecting and training": rest,
            **seconds,
        }
    total = sum(seconds.values()) or 1.0
    bars = "".join(
        f'<div style="width:{100 * x / total:.2f}%;background:{color}"></div>'
        for x, color in zip(seconds.values(), _COLORS, strict=False)
    )
    words = ", ".join(
        f'<span style="color:{color}">&#9632;</span> {name} {x:,.1f}'
        for (name, x), color in zip(seconds.items(), _COLORS, strict=False)
    )
    return (
        f'<div class="card"><p>{html.escape(label)}: {words} seconds</p>'
        f'<div class="bar">{bars}</div></div>'
    )


def _settings(runs: Sequence[tuple[str, Evidence]], defaults: Mapping[str, Any]) -> str:
    names = sorted({name for _, run in runs for name in run.settings})
    changed = {
        name
        for name in names
        for _, run in runs
        if name in defaults
        and _plain(defaults[name]) != _plain(run.settings.get(name, defaults[name]))
    }
    names.sort(key=lambda name: name not in changed)
    head = "".join(f"<th>{html.escape(label)}</th>" for label, _ in runs)
    lines = []
    for name in names:
        cells = []
        for _, run in runs:
            text = html.escape(str(run.settings.get(name, "")))
            cells.append(
                f"<td><b>{text}</b></td>" if name in changed else f"<td>{text}</td>"
            )
        lines.append(f"<tr><td>{html.escape(name)}</td>{''.join(cells)}</tr>")
    note = '<p class="soft">Bold: not the defaults.</p>' if defaults else ""
    return (
        f'{note}<div class="card"><table><tr><th>setting</th>{head}</tr>'
        f"{''.join(lines)}</table></div>"
    )


def _versions(run: Evidence) -> str:
    versions: dict[str, str] = {}
    for row in run.rows:
        versions |= row.get("versions", {})
    text = ", ".join(f"{name} {version}" for name, version in versions.items())
    return f'<p class="soft">{html.escape(text or "not recorded")}</p>'


def _plain(value: Any) -> Any:
    return [_plain(x) for x in value] if isinstance(value, list | tuple) else value
