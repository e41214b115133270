"""What each process of a run sees, by a list of devices that has a GPU."""

import dataclasses
import pathlib
import subprocess
import sys

import pytest
import tensorflow as tf

from tests.distribute.small_impala import IMPALA
from tfrl import distribute, train
from tfrl.distribute import replay_servers
from tfrl.distribute.coordination import remote_work
from tfrl.distribute.launch import local_launcher
from tfrl.distribute.launch.plan import Plan
from tfrl.distribute.lockstep import lockstep_roles
from tfrl.distribute.process_roles import ACTOR, EVALUATOR, LEARNER, Task
from tfrl.distribute.roles import actor, devices, evaluator, learner

CPU, GPU = "CPU:0", "GPU:0"
PATIENCE = 240.0
# An actor on the first CPU device and a learner on a second one, as on a GPU.
TRAIN = """
import dataclasses, itertools, sys
import tensorflow as tf

tf.config.set_logical_device_configuration(
    tf.config.list_physical_devices("CPU")[0],
    [tf.config.LogicalDeviceConfiguration() for _ in range(2)],
)
from tests.distribute.small_impala import IMPALA
from tfrl import replay_service, train
from tfrl.distribute.roles import actor, learner, run_tables
from tfrl.distribute import replay_servers
from tfrl.train.loops import placement

found = []


def make_run_settings(agent):
    found.append(placement.device_of(agent.policy.variables()))
    return {}


experiment = dataclasses.replace(
    IMPALA, device="CPU:1", make_run_settings=make_run_settings, jit_compile=True
)
server = replay_service.Server(run_tables.make_tables(experiment))
only = replay_servers.FixedServers((f"localhost:{server.port}",))
calls = itertools.count()
actor.act(experiment, only, 0, 0, lambda: next(calls) > 14)
directory = train.RunDirectory(sys.argv[1], {})
print(learner.learn(experiment, only, directory, 2, lambda: False).iteration)
print({*found})
server.stop()
"""


@pytest.fixture
def visible(monkeypatch):
    """The devices of this process, of which it has used none yet."""
    found = [CPU, GPU]

    def listed(kind):
        return [name for name in found if name.startswith(kind)]

    def set_visible(names, kind):
        found[:] = [name for name in found if not name.startswith(kind)] + names

    monkeypatch.setattr(tf.config, "list_physical_devices", listed)
    monkeypatch.setattr(tf.config, "set_visible_devices", set_visible)
    return found


@pytest.fixture
def seen(visible, monkeypatch):
    """What the roles see when they begin to work."""
    found = {}

    def note(role):
        def work(*arguments, **kwargs):
            found[role] = list(visible)
            visible[:] = [CPU, GPU]  # Another process.
            return train.RunResult(*[None] * len(dataclasses.fields(train.RunResult)))

        return work

    for module, name, role in (
        (actor, "act", ACTOR),
        (lockstep_roles, "act", ACTOR),
        (evaluator, "evaluate", EVALUATOR),
        (learner, "learn", LEARNER),
        (lockstep_roles, "learn", LEARNER),
    ):
        monkeypatch.setattr(module, name, note(role))
    return found


def work_by_launcher(experiment, schedule, directory):
    """Does the work of all processes that a `LocalLauncher` starts."""
    has_evaluator = schedule == "free"
    plan = Plan(
        experiment,
        train.RunDirectory(directory, {}),
        1,
        1,
        schedule=schedule,
        has_evaluator=has_evaluator,
    )
    addresses = replay_servers.FixedServers(("localhost:1",))
    for role in (ACTOR, *[EVALUATOR] * has_evaluator, LEARNER):
        local_launcher.work(Task(role), plan, addresses, 0, lambda: False)


def work_by_command(experiment, schedule, directory):
    """Does that of all processes that have been started by a command, or by Ray."""
    run = {
        "settings": {},
        "schedule": schedule,
        "directory": train.RunDirectory(directory, {}).arguments,
        "num_iterations": 1,
        "num_actors": 1,
        "has_evaluator": schedule == "free",
    }
    addresses = replay_servers.FixedServers(("localhost:1",))
    for role in (ACTOR, *[EVALUATOR] * run["has_evaluator"], LEARNER):
        member = Member(Task(role), run)
        remote_work._train(member, lambda: experiment, addresses, lambda: False, None)


@dataclasses.dataclass
class Member:
    task: Task
    run: dict
    number: int = 0


@pytest.mark.parametrize("schedule", ["free", "lockstep"])
@pytest.mark.parametrize("work", [work_by_launcher, work_by_command])
def test_the_learner_alone_sees_a_gpu(seen, work, schedule, tmp_path):
    work(IMPALA, schedule, tmp_path)
    assert seen.pop(LEARNER) == [CPU, GPU]
    assert set(seen) == {ACTOR} | ({EVALUATOR} if schedule == "free" else set())
    assert all(found == [CPU] for found in seen.values())


@pytest.mark.parametrize("work", [work_by_launcher, work_by_command])
def test_devices_are_those_of_the_experiment(seen, work, tmp_path):
    experiment = dataclasses.replace(IMPALA, device="cpu:0", actor_device="GPU:0")
    work(experiment, "free", tmp_path)
    assert seen == {ACTOR: [CPU, GPU], EVALUATOR: [CPU, GPU], LEARNER: [CPU]}


class Launcher:
    """Notes what the calling process sees."""

    def __init__(self, visible):
        self._visible = visible

    def launch(self, plan):
        self.found = list(self._visible)
        raise NotImplementedError


def test_the_calling_process_sees_no_gpu(visible, tmp_path):
    launcher = Launcher(visible)
    with pytest.raises(NotImplementedError):
        distribute.run_distributed(
            IMPALA, train.RunDirectory(tmp_path, {}), 1, 1, launcher=launcher
        )
    assert launcher.found == [CPU]


def test_a_process_that_has_used_tensorflow_before_is_warned(
    visible, monkeypatch, caplog
):
    def refuse(names, kind):
        raise RuntimeError("Visible devices cannot be modified after being initialized")

    monkeypatch.setattr(tf.config, "set_visible_devices", refuse)
    devices.hide_gpus()
    assert "computed something in this process before the run" in caplog.text


def test_a_device_that_does_not_exist_is_an_error():
    for build in (
        lambda: IMPALA.build(0, device="GPU:7"),
        lambda: IMPALA.build_for_learner(device="GPU:7"),
        lambda: dataclasses.replace(IMPALA, actor_device="GPU:7").build_agent(),
    ):
        with pytest.raises(ValueError, match="device: got 'GPU:7', expected one of"):
            build()


@pytest.mark.slow
def test_a_learner_trains_on_its_device(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", TRAIN, str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        cwd=pathlib.Path(__file__).parents[3],
    )
    assert done.stdout.splitlines()[-2:] == ["2", "{'/device:CPU:1'}"], done.stderr


def test_several_learners_have_devices_of_their_own(tmp_path):
    with pytest.raises(ValueError, match="device: got 'GPU:0' with 2 learners, expec"):
        Plan(
            dataclasses.replace(IMPALA, device="GPU:0"),
            train.RunDirectory(tmp_path, {}),
            1,
            1,
            num_learners=2,
        )
