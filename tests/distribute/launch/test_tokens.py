"""The token of a run: who has it, and who does not get in without it."""

import os
import pathlib
import subprocess
import sys
import time
import types

import numpy as np
import pytest

from tfrl import distribute, replay_service
from tfrl.distribute.launch import local_launcher, tokens
from tfrl.distribute.process_roles import ACTOR, LEARNER, REPLAY, Task
from tfrl.distribute.roles import reports
from tfrl.replay_service import errors
from tfrl.replay_service.transport import connection

PATIENCE = 60.0
TOKEN = "drawn for this test"
NOBODY = 65534
# It imports all that it needs before it becomes another user, who may not read it.
STRANGER = f"""
import os, sys
import numpy as np
from tfrl import replay_service
from tfrl.replay_service import errors

client = replay_service.Client(sys.argv[1], timeout=5.0)
data = np.zeros([4])
"localhost".encode("idna")
if os.getuid() == 0:
    os.setgroups([])
    os.setgid({NOBODY})
    os.setuid({NOBODY})
for call in (
    client.server_info,
    lambda: client.insert(data, {{"reports": 1.0}}),
    lambda: client.reset("reports"),
    client.checkpoint,
):
    try:
        call()
    except errors.AuthenticationError:
        print("refused", os.getuid())
"""


@pytest.fixture
def drawn(monkeypatch):
    """Every token that is drawn now, where the environment has none."""
    monkeypatch.delenv(connection.TOKEN_VARIABLE, raising=False)
    monkeypatch.setattr(tokens.secrets, "token_hex", lambda size: TOKEN)


def shown_by_proc(pid):
    """What other processes can see of a process's start."""
    return b"".join(
        pathlib.Path(f"/proc/{pid}/{name}").read_bytes()
        for name in ("cmdline", "environ")
    )


def make_plan(directory):
    """A run of one table, whose servers need no agent."""
    return types.SimpleNamespace(
        tables=[[reports.make_table()]],
        server_directories=[directory],
        tasks=[Task(REPLAY), Task(ACTOR), Task(LEARNER)],
    )


def work(task, plan, servers, starts):
    """A function of a child, which uses the server and tells what it knows."""

    def look(is_stopped):
        import os

        from tfrl import replay_service
        from tfrl.replay_service.transport import connection

        client = replay_service.Client(servers.first, timeout=5.0)
        client.insert(np.arange(4.0), {"reports": 1.0})
        return connection.default_token(), dict(os.environ)

    return look


@pytest.mark.skipif(sys.platform != "linux", reason="/proc is Linux's")
def test_servers_of_this_host_ask_strangers_for_a_token_that_only_children_have(
    drawn, monkeypatch, tmp_path
):
    monkeypatch.setattr(local_launcher, "work", work)
    with distribute.LocalLauncher().launch(make_plan(tmp_path)) as members:
        processes = [member.start(0) for member in members]
        try:
            server, *children = processes
            address = f"localhost:{server.port}"
            done = subprocess.run(
                [sys.executable, "-c", STRANGER, address],
                capture_output=True,
                text=True,
                timeout=PATIENCE,
            )
            user = NOBODY if os.getuid() == 0 else os.getuid()
            assert done.stdout.splitlines() == [f"refused {user}"] * 4, done.stderr
            for child in children:
                deadline = time.monotonic() + PATIENCE
                while child.poll() is None and time.monotonic() < deadline:
                    time.sleep(0.02)
                token, environment = child.result
                assert token == TOKEN
                assert TOKEN not in environment.values()
            client = replay_service.Client(address, token=TOKEN)
            assert client.server_info()["reports"].current_size == len(children)
            for process in processes:
                assert TOKEN.encode() not in shown_by_proc(process.pid)
            written = [path for path in tmp_path.rglob("*") if path.is_file()]
            assert all(TOKEN.encode() not in path.read_bytes() for path in written)
        finally:
            for process in reversed(processes):
                process.stop(1.0)


def test_a_token_of_the_environment_is_that_of_the_run(monkeypatch):
    monkeypatch.setenv(connection.TOKEN_VARIABLE, "given")
    assert tokens.draw() == "given"


def test_servers_and_clients_of_a_process_take_its_own_token_first(monkeypatch):
    monkeypatch.setenv(connection.TOKEN_VARIABLE, "of the environment")
    try:
        tokens.call_with("its own", lambda is_stopped: None, lambda: False)
        server = replay_service.Server([reports.make_table()])
        address = f"localhost:{server.port}"
        assert replay_service.Client(address).server_info()
        with pytest.raises(errors.AuthenticationError):
            replay_service.Client(address, token="of the environment").server_info()
        server.stop()
    finally:
        connection.set_default_token(None)
    assert connection.default_token() == "of the environment"
