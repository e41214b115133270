import json
import os
import pathlib
import re
import subprocess
import sys

import pytest

from tests.forks import REPOSITORY
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


def test_a_child_that_is_waited_for_says_what_it_wrote(monkeypatch, tmp_path):
    (tmp_path / "pathlib.py").write_text("open('EXECUTED', 'w')")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [p for p in sys.path if p])
    code = "import pathlib; print(sys.argv[1]); sys.exit('no ' + sys.argv[2])"
    done = interpreter.run(code, ["yes", tmp_path])
    assert (done.returncode, done.stdout) == (1, "yes\n")
    assert done.stderr == f"no {tmp_path}\n"
    assert not (tmp_path / "EXECUTED").exists()


# Modules that start programs other than by `interpreter`, and what they start.
STARTERS = {
    "tfrl/compilation/python_calls/gpu_calls.py": (
        "Python with -P, since it may import no `system`"
    ),
    "tfrl/compilation/processors.py": "/usr/sbin/sysctl",
    "tfrl/environments/gymnasium/vector_py_environment.py": "Gymnasium's workers",
    "tfrl/migrate/files.py": "git ls-tree, which runs nothing of a checkout",
    "tfrl/system/default/multiprocessing_core.py": "a program's own processes",
    "tfrl/system/interpreter.py": "the way of the others",
    "tfrl/system/interrupts.py": "none: it finds those of multiprocessing",
    "tfrl/system/portable.py": "this program once more, by its own command line",
    "tfrl/system/quiet.py": "/bin/sh",
    "tfrl/system/versions.py": "git rev-parse, which runs nothing of a checkout",
}


def test_all_children_are_started_in_one_way():
    calls = (
        r"\b(subprocess\.(run|Popen|call|check_)|multiprocessing\.(get_|active_))"
        r"|\bos\.(exec|fork|popen|posix_spawn|spawn|system)"
    )
    found = {
        str(path.relative_to(REPOSITORY))
        for path in pathlib.Path(REPOSITORY, "tfrl").rglob("*.py")
        if re.search(rf"({calls})\w*\(", path.read_text())
    }
    assert found == STARTERS.keys(), "start it by tfrl.system.interpreter"
