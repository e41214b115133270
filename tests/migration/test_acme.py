"""Scripts that do what the listings of Acme's component page do, after the renames.

`docs/from_acme.md` has the renames.
"""

import pathlib

import pytest

SCRIPTS = sorted((pathlib.Path(__file__).parent / "acme").glob("*.py"))


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_a_script_for_acme_runs_after_the_renames(script, monkeypatch):
    monkeypatch.setenv("HOME", "")  # Restored afterwards, if the script sets it.
    monkeypatch.setenv("TFRL_ID", "")
    source = compile(script.read_text(), str(script), "exec")
    exec(source, {"__name__": "__main__"})
