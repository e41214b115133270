import pathlib
import re
import subprocess
import sys

import pytest

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]


@pytest.mark.slow
def test_every_failure_is_measured(tmp_path):
    result = subprocess.run(
        [sys.executable, "-m", "benchmarks", "worker_failures", f"--output={tmp_path}"],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
    )
    assert result.returncode == 0, result.stderr
    lines = re.findall(r"^(\S.*?)  +\d+ ms  (.*)$", result.stdout, re.MULTILINE)
    assert [name for name, _ in lines] == [
        "kill -9",
        "raises",
        "hangs",
        "parent killed, idle",
        "parent killed, sleeping",
        "parent killed, busy",
    ]
    assert all("1" in error for _, error in lines[:3])
