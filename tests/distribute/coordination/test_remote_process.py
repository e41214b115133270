"""What a supervisor is told of a worker, from a scripted coordinator."""

import dataclasses

import pytest

from tfrl import replay_service, train
from tfrl.distribute.coordination import remote_process
from tfrl.distribute.coordination.coordinator import Worker
from tfrl.distribute.process_roles import LEARNER, Task

TASK = Task(LEARNER)
RESULT = train.RunResult(10, True, None, 200.0, 190.0, 55.5)


class Coordinator:
    """Knows at most one worker, and the time that the test sets."""

    def __init__(self):
        self.time, self.known, self.stopped = 0.0, None, []

    def now(self):
        return self.time

    def update(self):
        pass

    def worker(self, task):
        assert task == TASK
        return self.known

    def stop(self, role):
        self.stopped.append(role)
        self.known.ending = {"result": None}

    def appear(self, session="a"):
        self.time += 1.0
        self.known = Worker(session, 0, "host", 12, None, self.time)


@pytest.fixture
def made():
    coordinator, said = Coordinator(), []
    watch = remote_process.Watch(patience=60.0, silence=30.0, say=said.append)
    process = remote_process.RemoteProcess(coordinator, TASK, watch)
    return coordinator, process, said


def test_a_worker_runs_from_its_first_word(made):
    coordinator, process, said = made
    assert process.poll() is None
    assert process.pid == 0
    coordinator.appear()
    assert process.poll() is None
    assert process.pid == 12
    assert said == ["the learner: process 12 on host."]


def test_a_worker_that_does_not_appear_is_an_error_that_names_its_command(made):
    coordinator, process, _ = made
    coordinator.time = 61.0
    with pytest.raises(TimeoutError, match="within 60 s, expected one with --role=le"):
        process.poll()


def test_a_worker_of_an_earlier_run_of_the_task_does_not_count(made):
    coordinator, process, _ = made
    coordinator.appear()
    coordinator.known.heard_at = 0.0
    assert process.poll() is None
    assert process.pid == 0


def test_a_silent_worker_has_ended(made):
    coordinator, process, _ = made
    coordinator.appear()
    assert process.poll() is None
    coordinator.time += 31.0
    assert process.poll().how == "was not heard of for 31 s"


def test_a_worker_that_another_one_replaces_has_ended(made):
    coordinator, process, _ = made
    coordinator.appear("a")
    process.poll()
    coordinator.appear("b")
    assert process.poll().how == "was replaced by another process"


def test_the_result_of_the_learner_is_that_of_its_run(made):
    coordinator, process, _ = made
    coordinator.appear()
    process.poll()
    assert process.result is None
    coordinator.known.ending = {"result": dataclasses.asdict(RESULT)}
    assert process.poll().has_finished
    assert process.result == RESULT


def test_an_exception_is_shown_and_a_lost_server_is_one_to_recover_from(made):
    coordinator, process, _ = made
    coordinator.appear()
    process.poll()
    coordinator.known.ending = {"error": "Traceback: no", "lost": None}
    error = process.poll().error
    assert "the learner: its work raised" in str(error)
    assert "Traceback: no" in str(error)
    assert error.original is None
    coordinator.known.ending["lost"] = "no answer"
    assert isinstance(process.poll().error.original, replay_service.ReverbError)


def test_a_worker_is_asked_to_stop_once(made):
    coordinator, process, _ = made
    coordinator.appear()
    process.poll()
    process.stop(10.0)
    process.stop(10.0)
    assert coordinator.stopped == [LEARNER]
