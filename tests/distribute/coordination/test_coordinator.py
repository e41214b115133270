"""A coordinator and workers that are members of its run, here in one process."""

import os
import signal
import time

import numpy as np
import pytest

from tfrl import replay_service, version
from tfrl.distribute.coordination import coordinator as coordinators
from tfrl.distribute.coordination import coordinator_client
from tfrl.distribute.process_roles import ACTOR, LEARNER, REPLAY, Task

PATIENCE = 60.0
RUN = {"num_iterations": 10, "settings": {"seed": 3}}


def until(condition):
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.fixture(scope="module")
def run():
    return RUN


def make_note(task, **changes):
    """A note of a new process."""
    note = {
        "version": version.__version__,
        "task": task.key,
        "session": "a",
        "host": "b",
    }
    unknown = dict.fromkeys(("address", "peer", "ending"))
    return {**note, **unknown, "pid": 1, "is_new": True, **changes}


def say(client, note):
    client.insert(coordinators.to_array(note), {coordinators.NOTES: 1.0})


def join(coordinator, task):
    return coordinator_client.CoordinatorClient(f"localhost:{coordinator.port}", task)


@pytest.mark.parametrize("value", [{}, {"a": "é" * 2000}, ["x" * 1022], None])
def test_texts_pass_as_arrays_of_few_sizes(value):
    array = coordinators.to_array(value)
    assert array.dtype == np.uint8
    assert array.size >= 1024
    assert array.size & (array.size - 1) == 0
    assert coordinators.from_array(array[None]) == value


def test_a_worker_learns_the_runs_settings_and_is_known(coordinator):
    task = Task(ACTOR, 4)
    assert coordinator.worker(task) is None
    member = join(coordinator, task)
    assert member.run == RUN
    assert member.number == 0
    assert member.stopped_by is None
    assert coordinator.worker(task).ending is None
    member.leave(result={"iteration": 5})
    until(lambda: coordinator.worker(task).ending is not None)
    assert coordinator.worker(task).ending == {"result": {"iteration": 5}}


def test_a_coordinator_looks_now_and_then_or_at_once():
    coordinator = coordinators.Coordinator(RUN, now=lambda: 0.0)
    coordinator.update()
    task = Task(ACTOR, 4)
    client = replay_service.Client(f"localhost:{coordinator.port}")
    say(client, make_note(task))
    known = []
    for at_once in (False, True):
        coordinator.update(at_once=at_once)
        known.append(coordinator.worker(task) is not None)
    coordinator.member.start(0).stop(0.0)
    assert known == [False, True]


def test_notes_that_are_not_as_expected_are_left_out_and_their_worker_is_named(caplog):
    made = coordinators.Coordinator(RUN)
    client = replay_service.Client(f"localhost:{made.port}")
    task, other = Task(ACTOR, 4), Task(ACTOR, 5)
    older = make_note(task)
    del older["version"]
    for note in (
        [],
        "text",
        None,
        {},
        older,
        make_note(task, version="0.0.1"),
        make_note(task, pid="one"),
        {**make_note(task), "task": []},
        make_note(task, further=1),
        make_note(task, ending={"error": 5, "lost": None}),
        make_note(task, ending={"unknown": None}),
        make_note(task, address="nowhere"),
    ):
        say(client, note)
    client.insert(np.frombuffer(b"no JSON", np.uint8), {coordinators.NOTES: 1.0})
    with pytest.raises(
        ValueError, match=r"to be a uint8 \[\?\] tensor but got a double"
    ):
        client.insert(np.zeros([2, 3]), {coordinators.NOTES: 1.0})
    say(client, older)  # It is named once.
    say(client, make_note(other))
    made.update(at_once=True)
    made.member.start(0).stop(0.0)
    assert made.worker(task) is None
    assert made.worker(other) is not None
    assert len(caplog.records) == 13
    assert (
        "a worker ('actor/4' on 'b', process 1) is left out: it has the version None "
        f"of tfrl, expected {version.__version__!r}; install"
    ) in caplog.text


def test_a_worker_of_another_version_is_told_at_once(coordinator, monkeypatch, caplog):
    read = coordinators.from_array
    # So each of the two takes the other one for another version.
    monkeypatch.setattr(
        coordinators, "from_array", lambda array: {**read(array), "version": "9.9"}
    )
    expected = (
        f"got '{version.__version__}' of tfrl in actor 7, expected '9.9', the version"
    )
    with pytest.raises(RuntimeError, match=expected):
        join(coordinator, Task(ACTOR, 7))
    until(lambda: "left out: it has the version '9.9' of tfrl" in caplog.text)
    assert coordinator.worker(Task(ACTOR, 7)) is None


def test_the_newest_process_of_a_task_has_its_place_and_its_last_address(coordinator):
    task = Task(REPLAY)
    reader = join(coordinator, Task(ACTOR, 5))
    first = join(coordinator, task)
    assert first.last_address is None
    first.announce("here:1")
    assert reader.wait_for_address_of(task) == "here:1"
    second = join(coordinator, task)
    assert (second.number, second.last_address) == (1, "here:1")
    until(lambda: first.stopped_by is not None)
    assert first.stopped_by == (
        "another process has taken the place of the replay server"
    )
    # What the first one says now is of no interest.
    first.announce("here:2")
    second.announce("there:3")
    until(lambda: reader.address_of(task) == "there:3")
    for member in (first, second, reader):
        member.leave(result=None)


def test_a_role_is_asked_to_stop(coordinator):
    learner, actor = join(coordinator, Task(LEARNER)), join(coordinator, Task(ACTOR, 6))
    coordinator.stop(LEARNER)
    until(lambda: learner.stopped_by == "the run stops")
    assert actor.stopped_by is None
    for member in (learner, actor):
        member.leave(result=None)


@pytest.mark.slow
def test_a_coordinator_whose_server_was_started_again_tells_the_workers_the_same():
    made = coordinators.Coordinator(RUN)
    server = made.member.start(0)
    os.kill(server.pid, signal.SIGKILL)
    until(server.poll)
    made.update()  # Nothing is new while the server is down.
    server.stop(0.0)
    made.member.start(1)
    client = replay_service.Client(f"localhost:{made.port}")
    until(lambda: made.update() or client.server_info()["board"].current_size)
    [sample] = client.sample(coordinators.BOARD, 1, emit_timesteps=False)
    assert coordinators.from_array(sample.data[0])["run"] == RUN
    server.stop(0.0)


def test_a_coordinator_for_other_hosts_needs_a_token(monkeypatch):
    monkeypatch.delenv("TFRL_REPLAY_TOKEN", raising=False)
    with pytest.raises(ValueError, match="set TFRL_REPLAY_TOKEN"):
        coordinators.Coordinator(RUN, host="0.0.0.0")
