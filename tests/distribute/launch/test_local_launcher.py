"""What a run does with the members of a launcher, and who has its token."""

import contextlib
import os
import pathlib
import subprocess
import sys
import tempfile
import time
import types

import numpy as np
import pytest

from tests.distribute.launch.test_plan import EXPERIMENT
from tfrl import distribute, replay_service, train
from tfrl.distribute import process_roles
from tfrl.distribute.launch import local_launcher, plan
from tfrl.distribute.roles import actor_reports
from tfrl.replay_service.transport import connection
from tfrl.system import supervisor
from tfrl.system.child_process import Ending

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


class Scripted:
    """A process that ends at its second poll, with a result."""

    pid = 7

    def __init__(self, ending, result=None):
        self._endings = iter([None, ending])
        self.result = result
        self.grace = None

    def poll(self):
        return next(self._endings, None)

    def stop(self, grace):
        self.grace = grace


class Launcher:
    """Has an actor that is killed, and a learner that finishes."""

    def __init__(self, num_deaths=10):
        self._deaths = num_deaths
        self.started, self.events = [], []

    @contextlib.contextmanager
    def launch(self, plan):
        self.plan = plan
        finished = Ending("has finished", has_finished=True)
        results = {"the learner": 5}

        def member(task):
            def start(starts):
                self.started.append((task.title, starts))
                ending = None
                if task.role == "actor" and self._deaths:
                    self._deaths -= 1
                    ending = Ending("was killed by SIGKILL")
                elif task.role == "learner":
                    ending = finished
                return Scripted(ending, results.get(task.title))

            return supervisor.Member(task.title, start)

        try:
            yield [member(task) for task in plan.tasks]
        finally:
            self.events.append("left")


def test_a_run_starts_the_members_of_its_launcher_and_returns_the_learners_result(
    tmp_path,
):
    launcher, said = Launcher(), []
    result = distribute.run_distributed(
        EXPERIMENT,
        train.RunDirectory(tmp_path, {}),
        num_actors=1,
        num_iterations=10,
        launcher=launcher,
        say=said.append,
    )
    assert result == 5
    assert launcher.started[:3] == [
        ("the replay server", 0),
        ("actor 0", 0),
        ("the learner", 0),
    ]
    assert launcher.plan.num_iterations == 10
    assert launcher.events == ["left"]
    assert said[0].startswith("actor 0: its process 7 was killed by SIGKILL")


def test_all_processes_start_again_if_one_of_a_run_in_lockstep_ends(tmp_path):
    launcher, said = Launcher(num_deaths=1), []
    result = distribute.run_distributed(
        EXPERIMENT,
        train.RunDirectory(tmp_path, {}),
        num_actors=1,
        num_iterations=10,
        schedule="lockstep",
        launcher=launcher,
        say=said.append,
    )
    assert result == 5
    assert launcher.events == ["left", "left"]
    assert [starts for _, starts in launcher.started] == [0] * 6
    assert said == [
        "actor 0: its process 7 was killed by SIGKILL. All processes of the run are "
        "started again now, from its last checkpoint."
    ]


def shown_by_proc(pid):
    """What other processes can see of a process's start."""
    return b"".join(
        pathlib.Path(f"/proc/{pid}/{name}").read_bytes()
        for name in ("cmdline", "environ")
    )


class OneTable:
    """The plan of a run of one table, whose servers need no agent."""

    def __init__(self, directory):
        self.server_directories = [directory]
        self.tasks = [
            process_roles.Task(process_roles.REPLAY),
            process_roles.Task(process_roles.ACTOR),
            process_roles.Task(process_roles.LEARNER),
        ]

    @property
    def tables(self):
        return [[actor_reports.make_table()]]


def use_the_server(task, plan, servers, starts, is_stopped):
    """A function of a child, which uses the server and tells what it knows."""
    import os
    import tempfile

    from tfrl import replay_service
    from tfrl.replay_service.transport import connection

    client = replay_service.Client(servers.first, timeout=5.0)
    client.insert(np.arange(4.0), {"reports": 1.0})
    return connection.default_token(), dict(os.environ), tempfile.gettempdir()


@pytest.fixture(scope="module")
def launched(tmp_path_factory):
    """What was seen of a run of one table, whose token is drawn now."""
    folder = tmp_path_factory.mktemp("launched")
    with contextlib.ExitStack() as stack:
        patch = stack.enter_context(pytest.MonkeyPatch.context())
        patch.delenv(connection.TOKEN_VARIABLE, raising=False)
        patch.setattr(plan.secrets, "token_hex", lambda size: TOKEN)
        patch.setattr(local_launcher, "work", use_the_server)
        launcher = distribute.LocalLauncher()
        members = stack.enter_context(launcher.launch(OneTable(folder)))
        processes = [member.start(0) for member in members]
        try:
            server, *children = processes
            address = f"localhost:{server.port}"
            stranger = subprocess.run(
                [sys.executable, "-c", STRANGER, address],
                capture_output=True,
                text=True,
                timeout=PATIENCE,
            )
            deadline = time.monotonic() + PATIENCE
            while not all(child.poll() for child in children):
                assert time.monotonic() < deadline
                time.sleep(0.02)
            results = [child.result for child in children]
            client = replay_service.Client(address, token=TOKEN)
            seen = types.SimpleNamespace(
                stranger=stranger,
                tokens=[token for token, _, _ in results],
                environments=[environment for _, environment, _ in results],
                temporary={directory for _, _, directory in results},
                is_there=all(os.path.isdir(path) for _, _, path in results),
                written=client.server_info()["reports"].current_size,
                shown=[shown_by_proc(process.pid) for process in processes],
                files=[x.read_bytes() for x in folder.rglob("*") if x.is_file()],
            )
        finally:
            for process in reversed(processes):
                process.stop(1.0)
    return seen


on_linux = pytest.mark.skipif(sys.platform != "linux", reason="/proc is Linux's")


@pytest.mark.slow
@on_linux
def test_processes_of_this_host_have_a_temporary_folder_that_ends_with_the_run(
    launched,
):
    (folder,) = launched.temporary
    assert folder != tempfile.gettempdir()
    assert launched.is_there
    assert not os.path.exists(folder)


@pytest.mark.slow
@on_linux
def test_servers_of_this_host_ask_strangers_for_a_token_that_only_children_have(
    launched,
):
    user = NOBODY if os.getuid() == 0 else os.getuid()
    stranger = launched.stranger
    assert stranger.stdout.splitlines() == [f"refused {user}"] * 4, stranger.stderr
    assert launched.tokens == [TOKEN] * 2
    assert all(TOKEN not in values.values() for values in launched.environments)
    assert launched.written == len(launched.tokens)
    assert all(TOKEN.encode() not in shown for shown in launched.shown)
    assert all(TOKEN.encode() not in content for content in launched.files)
