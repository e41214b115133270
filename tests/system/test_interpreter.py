import json
import os
import subprocess
import sys

import pytest

from tfrl.system import interpreter

REPORT = "import json; print(json.dumps([sys.argv, sys.path]))"


def run(code, *arguments, **options):
    child = interpreter.start(
        code,
        arguments,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        **options,
    )
    output, _ = child.communicate(timeout=60)
    assert child.returncode == 0
    return child, output


def test_child_has_the_parents_path_and_the_given_arguments(monkeypatch, tmp_path):
    monkeypatch.setattr(sys, "path", [*sys.path, "a folder", tmp_path])
    _, output = run(REPORT, "one", 2, "")
    argv, path = json.loads(output)
    assert argv == ["-c", "one", "2", ""]
    assert path == [*sys.path[:-1], str(tmp_path)]


def test_the_path_is_set_before_the_first_import(monkeypatch, tmp_path):
    (tmp_path / "json.py").write_text("raise SystemExit('the wrong module')")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [p for p in sys.path if p])
    _, output = run("import json; print(json.dumps(1))")
    assert output.split() == [b"1"]


@pytest.mark.skipif(os.name == "nt", reason="POSIX has sessions")
def test_child_has_a_session_of_its_own_and_the_files_it_is_given():
    reading, writing = os.pipe()
    child, output = run(
        "import os; os.write(int(sys.argv[1]), b'x'); print(os.getsid(0))",
        writing,
        pass_fds=[writing],
    )
    os.close(writing)
    assert os.read(reading, 10) == b"x"
    os.close(reading)
    assert int(output) == child.pid


def test_child_has_the_parents_options():
    code = (
        "import subprocess; from tfrl.system import interpreter; "
        "interpreter.start('print(sys.flags.optimize)', [], stdin=None).wait()"
    )
    output = subprocess.check_output([sys.executable, "-O", "-c", code])
    assert output.split() == [b"1"]


def test_children_start_without_the_private_function(monkeypatch):
    monkeypatch.delattr(subprocess, "_args_from_interpreter_flags")
    _, output = run("print(sys.argv[1])", "x")
    assert output.split() == [b"x"]
