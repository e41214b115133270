"""What a run does with the members of a launcher, here in one process."""

import contextlib
import os
import tempfile
import time
import types

from tests.distribute.launch.test_plan import EXPERIMENT
from tfrl import distribute, train
from tfrl.distribute import process_roles
from tfrl.distribute.launch import local_launcher
from tfrl.system import supervisor
from tfrl.system.function_process import Ending


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


def test_processes_of_this_host_have_a_temporary_folder_that_ends_with_the_run(
    monkeypatch,
):
    def work(*_):
        return lambda is_stopped: tempfile.gettempdir()

    monkeypatch.setattr(local_launcher, "work", work)
    actors = [process_roles.Task(process_roles.ACTOR, number) for number in range(2)]
    plan = types.SimpleNamespace(tables=[], server_directories=[], tasks=actors)
    with local_launcher.LocalLauncher().launch(plan) as members:
        processes = [member.start(0) for member in members]
        deadline = time.monotonic() + 60
        while not all(process.poll() for process in processes):
            assert time.monotonic() < deadline
        folder, other = (process.result for process in processes)
        assert folder == other != tempfile.gettempdir()
        assert os.path.isdir(folder)
        for process in processes:
            process.stop(10.0)
    assert not os.path.exists(folder)
