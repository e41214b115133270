import pathlib
import re
import subprocess
import sys

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]


def test_every_contender_is_measured():
    result = subprocess.run(
        [
            sys.executable,
            "-m",
            "benchmarks.dqn_loop",
            "--rounds=1",
            "--iterations=40",
        ],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
    )
    assert result.returncode == 0, result.stderr
    names = re.findall(r"^(tfrl, .*?)  +\d+ steps/s", result.stdout, re.MULTILINE)
    assert names == [
        "tfrl, as_dataset",
        "tfrl, variables",
        "tfrl, default of train_dqn",
    ]
