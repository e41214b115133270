"""Scripts for Acme, such as its component page has, run after the page's one rename."""

import pathlib
import re
import subprocess

import pytest

SCRIPTS = sorted((pathlib.Path(__file__).parent / "acme").glob("*.py"))
PAGE = pathlib.Path(__file__).parents[2] / "docs/from_acme.md"


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_a_script_for_acme_runs_after_the_rename(script, monkeypatch):
    monkeypatch.setenv("HOME", "")  # Restored afterwards, if the script sets it.
    monkeypatch.setenv("TFRL_ID", "")
    (rename,) = re.findall(r"^sed -i '(.*)' your_script\.py$", PAGE.read_text(), re.M)
    renamed = subprocess.run(
        ["sed", rename, str(script)], capture_output=True, text=True, check=True
    ).stdout
    source = compile(renamed, str(script), "exec")
    exec(source, {"__name__": "__main__"})
