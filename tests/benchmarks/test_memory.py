"""The memory that a process and its descendants hold."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from benchmarks.workers import memory

_HOLDERS = """
import os, subprocess, sys
file = os.memfd_create("shared")
os.posix_fallocate(file, 0, 40_000_000)
own = bytearray(os.urandom(20_000_000))
if len(sys.argv) > 2:
    child = subprocess.Popen([sys.executable, "-c", sys.argv[1], sys.argv[1]],
                             stdin=subprocess.PIPE, pass_fds=[file])
    child.stdin.write(b"x")
print("ready", flush=True)
sys.stdin.read()
"""


@pytest.mark.skipif(not hasattr(os, "memfd_create"), reason="of Linux")
def test_children_count_and_shared_files_count_once():
    command = [sys.executable, "-c", _HOLDERS, _HOLDERS]
    held = []
    for more in ([], ["with a child"]):
        with subprocess.Popen(
            [*command, *more], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        ) as process:
            for _ in range(1 + len(more)):
                process.stdout.readline()
            held.append(memory.held(process.pid))
            process.stdin.close()
    alone, together = held
    assert 60e6 < alone < 100e6
    # The child has a file and 20 MB of its own, and shares its parent's file.
    assert 60e6 < together - alone < 100e6


def test_a_process_that_is_not_there_holds_nothing():
    assert memory.held(2**22 + 1) == 0
