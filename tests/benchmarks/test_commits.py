"""The commit that a row of a table names."""

import functools
import re
import subprocess

import pytest

from benchmarks import commits


def test_a_row_names_the_commit_and_whether_the_code_differs_from_it(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(commits, "ROOT", tmp_path)
    with pytest.raises(RuntimeError, match="is no git repository"):
        commits.current_commit()
    run = functools.partial(subprocess.run, cwd=tmp_path, check=True)
    identity = ["-c", "user.name=A", "-c", "user.email=a@example.com"]
    run(["git", "init", "--quiet"])
    for folder in ("tfrl", "docs"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "code.py").write_text("1")
    (tmp_path / "scores.csv").write_text("old")
    run(["git", "add", "."])
    run(["git", *identity, "commit", "--quiet", "--message=First"])
    (tmp_path / "scores.csv").write_text("new")
    (tmp_path / "docs" / "code.py").write_text("2")
    commit = commits.current_commit()
    assert re.fullmatch("[0-9a-f]{7}", commit)
    (tmp_path / "tfrl" / "code.py").write_text("2")
    assert commits.current_commit() == f"{commit}+"
