"""Processes that hang while their parent is killed."""

import os
import signal
import subprocess
import sys
import time

import pytest

from tfrl.system import orphan_guard

PATIENCE = 60.0
# Like a simulator that hangs: it hears neither its parent's end nor a SIGTERM.
DEAF = (
    "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); "
    "print('deaf', flush=True); time.sleep(600)"
)
PARENT = f"""
import os, subprocess, sys, time
from tfrl.system import orphan_guard
child = subprocess.Popen([sys.executable, "-c", {DEAF!r}], stdout=subprocess.PIPE)
child.stdout.readline()
guard = orphan_guard.OrphanGuard([child.pid])
print(child.pid, flush=True)
if sys.argv[1] == "exits":
    sys.exit()
if sys.argv[1] == "forks" and os.fork() == 0:
    time.sleep(600)
time.sleep(600)
"""


def has_ended(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] == "Z"
    except FileNotFoundError:
        return True


def wait_until(condition):
    deadline = time.monotonic() + PATIENCE
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.02)
    return condition()


@pytest.mark.parametrize(
    ("way", "number"),
    [
        ("hangs", signal.SIGTERM),
        ("hangs", signal.SIGKILL),
        ("forks", signal.SIGKILL),
        ("exits", None),
    ],
)
def test_a_process_that_hears_nothing_ends_after_its_parent(way, number):
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT, way],
        stdout=subprocess.PIPE,
        start_new_session=True,
    )
    pid = int(parent.stdout.readline())
    try:
        assert not has_ended(pid)
        if number is not None:
            os.kill(parent.pid, number)
        parent.wait(PATIENCE)
        assert wait_until(lambda: has_ended(pid))
    finally:
        os.killpg(parent.pid, signal.SIGKILL)
        parent.stdout.close()


def test_a_guard_that_is_dismissed_leaves_the_processes_alone():
    with subprocess.Popen(
        [sys.executable, "-c", DEAF], stdout=subprocess.PIPE
    ) as process:
        process.stdout.readline()
        guard = orphan_guard.OrphanGuard([process.pid])
        guard.dismiss()
        guard.dismiss()
        assert process.poll() is None
        process.kill()
