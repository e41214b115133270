"""The parts of the slow tests, and which of them a change touches."""

import json
import pathlib
import subprocess
import sys

import pytest

from tests import slow_part, touched

MODULES = """
import json, sys
import {module}
print(json.dumps([m.__file__ for m in list(sys.modules.values())
                  if (getattr(m, "__file__", None) or "").startswith({root!r})]))
"""


def test_parts_take_about_the_same_time_and_a_long_file_is_one():
    seconds = {f"tests/test_{i:02}.py": float(i) for i in range(1, 100)}
    seconds["tests/train/test_long.py"] = 601.0
    found = slow_part.parts(seconds)
    assert list(found) == [*(str(i) for i in range(1, 13)), "long"]
    assert found["long"] == ["tests/train/test_long.py"]
    assert [f for files in found.values() for f in files] == sorted(seconds)
    loads = [sum(map(seconds.get, found[str(i)])) for i in range(1, 13)]
    # But for half a file of at most 99 at both ends.
    assert all(abs(load - sum(loads) / 12) <= 99 for load in loads)
    assert found == slow_part.parts(dict(reversed(seconds.items())))


def test_the_seconds_are_those_of_every_file_with_slow_tests():
    rows = slow_part.SECONDS.read_text(encoding="utf-8").splitlines()[1:]
    assert [row.split(",")[0] for row in rows] == slow_part.slow_files(), (
        "run `python -m tests.slow_part all` and then --record"
    )


def test_an_unknown_part_is_named_before_any_runs(capsys, monkeypatch):
    monkeypatch.setattr(slow_part, "_run", None)
    assert slow_part.main(["1", "13"]) == 2
    assert "expected all or one of 1, 2, 3" in capsys.readouterr().out


def test_seconds_are_added_up_by_file(tmp_path):
    case = '<testcase classname="c" name="n" file="tests/test_a.py" time="{}" />'
    cases = case.format(1.5) + case.format(2.25).replace("test_a", "test_b")
    report = tmp_path / "1.xml"
    report.write_text(
        f"<testsuites><testsuite>{cases}{case.format(0.25)}</testsuite></testsuites>"
    )
    assert slow_part.measured([report]) == {
        "tests/test_a.py": 1.75,
        "tests/test_b.py": 2.25,
    }


def test_parts_are_told_with_the_files_that_a_change_touches():
    of_files = {
        "1": ["tests/specs/test_matching.py", "tests/losses/test_aggregation.py"],
        "2": ["tests/losses/test_ppo.py"],
    }
    found = slow_part.touched_parts(of_files, ["tfrl/specs/matching.py"])
    assert found == {"1": ["tests/specs/test_matching.py"]}


@pytest.mark.parametrize(
    ("changed", "test", "is_touched"),
    [
        # By an import, a name of a stub, itself, what all import, what the tests share.
        ("tfrl/specs/matching.py", "tests/specs/test_matching.py", True),
        ("tfrl/losses/ppo.py", "tests/losses/test_ppo.py", True),
        ("tests/specs/test_matching.py", "tests/specs/test_matching.py", True),
        ("tfrl/version.py", "tests/specs/test_matching.py", True),
        ("tests/conftest.py", "tests/specs/test_matching.py", True),
        ("tfrl/losses/ppo.py", "tests/specs/test_matching.py", False),
        ("README.md", "tests/specs/test_matching.py", False),
        ("tfrl/command/cache.py", "tests/command/test_cache.py", True),
    ],
)
def test_a_change_touches_what_imports_or_names_it(changed, test, is_touched):
    assert touched.touches([changed], [test]) == ({test} if is_touched else set())


def test_all_that_a_test_imports_is_reached():
    """Held against the modules that a process has after the import."""
    module = "tests.replay_service.engine.tables.test_selectors"
    script = MODULES.format(module=module, root=f"{touched.ROOT}/tfrl")
    output = subprocess.check_output(
        [sys.executable, "-c", script], cwd=touched.ROOT, text=True
    )
    imported = {
        pathlib.Path(path).relative_to(touched.ROOT).as_posix()
        for path in json.loads(output)
    }
    assert len(imported) > 5
    test = f"{module.replace('.', '/')}.py"
    missing = [p for p in imported if not touched.touches([p], [test])]
    assert missing == []
