import subprocess
import sys

import pytest

from benchmarks import timing


@pytest.fixture(autouse=True)
def own_folder(tmp_path, monkeypatch):
    monkeypatch.setattr(timing.tempfile, "tempdir", str(tmp_path))


def test_it_is_going_on_while_it_is_declared():
    assert not timing.is_going_on()
    with timing.declared():
        assert timing.is_going_on()
    assert not timing.is_going_on()


def test_what_a_process_declared_ends_with_it(tmp_path):
    code = (
        "import tempfile; tempfile.tempdir = sys.argv[1]\n"
        "from benchmarks import timing; declared = timing.declared()\n"
        "declared.__enter__(); os._exit(0)"
    )
    subprocess.run(
        [sys.executable, "-c", f"import os, sys; {code}", tmp_path], check=True
    )
    assert list(tmp_path.iterdir())
    assert not timing.is_going_on()


def test_a_file_of_another_name_is_no_declaration(tmp_path):
    (tmp_path / "tfrl_timing_note").touch()
    assert not timing.is_going_on()
