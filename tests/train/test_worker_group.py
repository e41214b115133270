"""Two workers that train together: equality, errors, death and a new start.

See `scripts/workers.py`. Each worker has half of each batch.
"""

import json
import os
import pathlib
import re
import socket
import subprocess
import sys
import time

import pytest

from tfrl.train import worker_group

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
SCRIPT = pathlib.Path(__file__).parent / "scripts" / "workers.py"
SECONDS = 600


def free_addresses():
    with socket.socket() as one, socket.socket() as other:
        for each in (one, other):
            each.bind(("127.0.0.1", 0))
        return [f"127.0.0.1:{s.getsockname()[1]}" for s in (one, other)]


class Group:
    """Two running workers."""

    def __init__(self, folder, num_iterations, bad_row=-1):
        addresses = free_addresses()
        self.logs = [folder / f"worker{index}.txt" for index in range(2)]
        self.processes = []
        for index, log in enumerate(self.logs):
            with log.open("w") as errors:
                self.processes.append(
                    subprocess.Popen(
                        [
                            sys.executable,
                            str(SCRIPT),
                            *map(str, (folder, num_iterations, bad_row)),
                        ],
                        env={
                            **os.environ,
                            **worker_group.environment(addresses, index),
                            "PYTHONPATH": str(REPOSITORY),
                            "CUDA_VISIBLE_DEVICES": "",
                        },
                        stdout=subprocess.PIPE,
                        stderr=errors,
                        text=True,
                    )
                )

    def found(self, index):
        """Returns what a worker has printed, after its end."""
        output, _ = self.processes[index].communicate(timeout=SECONDS)
        assert self.processes[index].returncode == 0, self.logs[index].read_text()[
            -3000:
        ]
        return json.loads(output.splitlines()[-1])

    def end(self):
        for process in self.processes:
            process.kill()
            process.communicate()


@pytest.fixture
def start():
    groups = []

    def start_group(*args):
        groups.append(Group(*args))
        return groups[-1]

    yield start_group
    for group in groups:
        group.end()


@pytest.mark.slow
def test_two_workers_learn_what_one_device_learns(start, tmp_path):
    group = start(tmp_path, 7)
    chief, other = group.found(0), group.found(1)
    assert chief["error"] is other["error"] is None
    # Seven updates of gradient descent with clipping, and a normalizer's statistics.
    assert chief["difference"] < 1e-5
    assert chief["sums"] == other["sums"]
    assert chief["train_steps"] == other["train_steps"] == 7
    assert chief["seeds"] != other["seeds"]
    # The chief alone has written: one run, and no trace of the other.
    assert {*os.listdir(tmp_path)} == {"run", "worker0.txt", "worker1.txt"}


@pytest.mark.slow
def test_what_is_not_finite_in_one_worker_stops_both(start, tmp_path):
    # The reward of the second worker in the second batch.
    group = start(tmp_path, 7, 13)
    for index in range(2):
        found = group.found(index)
        assert "loss is not finite" in found["error"]
        assert found["train_steps"] == 1


@pytest.mark.slow
def test_a_group_whose_worker_was_killed_goes_on_from_its_checkpoint(start, tmp_path):
    group = start(tmp_path, 1_000_000)
    deadline = time.monotonic() + SECONDS
    while not [*tmp_path.glob("run/checkpoints/ckpt-*.index")]:
        assert time.monotonic() < deadline, group.logs[0].read_text()[-3000:]
        assert group.processes[0].poll() is None, group.logs[0].read_text()[-3000:]
        time.sleep(0.2)
    group.processes[1].kill()
    assert re.match("WorkerLostError: strategy: another", group.found(0)["error"])
    newest = max(
        int(path.stem.split("-")[1])
        for path in tmp_path.glob("run/checkpoints/ckpt-*.index")
    )
    group = start(tmp_path, newest + 5)
    chief, other = group.found(0), group.found(1)
    assert chief["error"] is other["error"] is None
    assert chief["result"] == newest
    assert chief["iteration"] == newest + 5
    assert chief["train_steps"] == other["train_steps"] == newest + 5
    # The second worker has no checkpoint: it was sent the chief's numbers.
    assert chief["sums"] == other["sums"]


def test_the_environment_of_a_worker():
    made = worker_group.environment(["a:1", "b:2"], 1)
    assert json.loads(made["TF_CONFIG"]) == {
        "cluster": {"worker": ["a:1", "b:2"]},
        "task": {"type": "worker", "index": 1},
    }
    with pytest.raises(ValueError, match=r"addresses: got .* two workers or more"):
        worker_group.environment(["a:1"], 0)
    with pytest.raises(ValueError, match="index: got 2 for 2 addresses"):
        worker_group.environment(["a:1", "b:2"], 2)


def test_a_process_that_is_no_worker_gets_no_strategy(monkeypatch):
    monkeypatch.delenv("TF_CONFIG", raising=False)
    with pytest.raises(ValueError, match="TF_CONFIG: got no such environment"):
        worker_group.make_strategy()
    with pytest.raises(ValueError, match="timeout_s"):
        worker_group.make_strategy(timeout_s=0)
