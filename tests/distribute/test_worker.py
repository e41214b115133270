"""The command of a worker, here in threads of this process."""

import os
import pathlib
import signal
import subprocess
import sys
import threading
import time

import pytest

from tests.distribute import small_impala
from tfrl import distribute, replay_service, train
from tfrl.distribute import worker
from tfrl.distribute.coordination.coordinator import Coordinator
from tfrl.distribute.process_roles import REPLAY, Task

EXPERIMENT = "tests.distribute.small_impala:make_experiment"
PATIENCE = 240.0
SCRIPT = pathlib.Path(__file__).parent / "scripts" / "worker.py"


@pytest.fixture(autouse=True)
def _token(monkeypatch):
    monkeypatch.setenv("TFRL_REPLAY_TOKEN", "a secret")


def start(command, forks):
    """Runs a printed command; returns its thread and a list for its status.

    The learner has a process of its own: where it waits for sequences, it occupies
    threads of TensorFlow that the actor may need.
    """
    words = command.split()
    assert words[:3] == ["python", "-m", "tfrl.distribute.worker"]
    statuses = []

    def run():
        if "--role=learner" in words:
            done = forks.run(str(SCRIPT), os.environ["TFRL_REPLAY_TOKEN"], *words[3:])
            statuses.append(done.code)
        else:
            statuses.append(worker.main(words[3:]))

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    return thread, statuses


@pytest.mark.slow
def test_the_commands_of_a_launcher_train_to_the_end(tmp_path, forks):
    launched = []

    def say(text):
        for line in text.splitlines():
            if line.startswith("python"):
                launched.append(start(line, forks))
            else:
                said.append(line)

    said = []
    launcher = distribute.CommandLauncher(EXPERIMENT, {"seed": 3}, say=say)
    directory = train.RunDirectory(tmp_path / "run", {"num_iterations": 4})
    result = distribute.run_distributed(
        small_impala.make_experiment(seed=3),
        directory,
        num_actors=1,
        num_iterations=4,
        launcher=launcher,
        say=said.append,
    )
    assert isinstance(result, train.RunResult)
    assert (result.iteration, result.finished) == (4, True)
    assert directory.finished_iteration() == 4
    for thread, statuses in launched:
        thread.join(PATIENCE)
        assert statuses == [0]
    assert len(launched) == 3
    assert sorted(line.split(":")[0] for line in said) == [
        "actor 0",
        "the learner",
        "the replay server",
    ]


def until(condition):
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


class Platform:
    """Starts commands as processes, and those again that end with another status."""

    def __init__(self):
        self.processes, self.is_over = {}, False
        self._thread = threading.Thread(target=self._watch)
        self._thread.start()

    def say(self, text):
        for line in text.splitlines():
            if line.startswith("python"):
                role = line.split("--role=")[1].split()[0]
                self._start(f"{role}/{line.split('--index=')[1].split()[0]}", line)

    def _start(self, name, line):
        words = [sys.executable, *line.split()[1:]]
        self.processes[name] = line, subprocess.Popen(words)

    def _watch(self):
        while not self.is_over:
            for name, (line, process) in list(self.processes.items()):
                if process.poll() not in (None, 0):
                    self._start(name, line)
            time.sleep(0.2)

    def statuses(self):
        """Waits for the ends of all processes."""
        until(lambda: all(p.poll() == 0 for _, p in self.processes.values()))
        self.is_over = True
        self._thread.join()

    def kill(self, name):
        _, process = self.processes[name]
        os.kill(process.pid, signal.SIGKILL)
        until(lambda: self.processes[name][1] is not process)


# About two minutes each: every actor and learner imports TensorFlow.
@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    ("settings", "killed"),
    [
        ({}, ["actor/0", "replay/0", "learner/0"]),
        (
            {"num_shards": 2, "num_learners": 2},
            ["replay/1", "learner/1", "learner/0", "replay/0"],
        ),
    ],
    ids=["single", "several"],
)
def test_a_run_of_commands_survives_that_each_of_them_is_killed(
    settings, killed, tmp_path, monkeypatch
):
    made, make = [], Coordinator.__init__

    def remember(coordinator, *arguments, **kwargs):
        make(coordinator, *arguments, **kwargs)
        made.append(coordinator)

    monkeypatch.setattr(Coordinator, "__init__", remember)
    platform, said, results = Platform(), [], []
    is_stopped = threading.Event()

    def run():
        result = distribute.run_distributed(
            small_impala.make_experiment(seed=3),
            train.RunDirectory(tmp_path, {}),
            num_actors=2,
            num_iterations=10**9,
            launcher=distribute.CommandLauncher(
                EXPERIMENT, {"seed": 3}, say=platform.say
            ),
            is_stopped=is_stopped.is_set,
            say=said.append,
            **settings,
        )
        results.append(result)

    thread = threading.Thread(target=run)
    thread.start()
    server = Task(REPLAY)
    until(lambda: made and made[0].worker(server) and made[0].worker(server).address)

    def step():
        client = replay_service.Client(made[0].worker(server).address)
        if not client.server_info()["variables"].current_size:
            return -1
        [sample] = client.sample("variables", 1, emit_timesteps=False)
        return int(sample.data[-1][0])

    until(lambda: step() >= 2 * small_impala.CHECKPOINT_INTERVAL)
    for name in killed:
        platform.kill(name)
        steps = [step()]
        until(lambda steps=steps: steps.append(step()) or steps[-1] >= steps[0] + 8)
    is_stopped.set()
    thread.join(PATIENCE)
    assert not thread.is_alive()
    assert not results[0].finished
    assert results[0].iteration >= steps[-1]
    platform.statuses()
    # Others that have lost a server or a partner are started again, too.
    names = {line.split(":")[0] for line in said}
    titles = [
        Task(role, int(number)).title
        for role, number in (name.split("/") for name in killed)
    ]
    assert names >= {*titles}
    assert all("It is expected again" in line for line in said)


def test_a_command_whose_work_raises_ends_with_status_1(monkeypatch, capsys):
    def fail():
        raise ValueError("wrong")

    monkeypatch.setattr(worker, "main", fail)
    with pytest.raises(SystemExit) as ended:
        worker._run_command()
    assert ended.value.code == 1
    assert "ValueError: wrong" in capsys.readouterr().err
