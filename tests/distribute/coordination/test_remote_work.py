"""What a process of a run does on another host, here in one process."""

import time

import pytest

from tfrl import replay_service
from tfrl.distribute import worker
from tfrl.distribute.coordination import remote_work
from tfrl.distribute.process_roles import ACTOR, REPLAY, Task

EXPERIMENT = "tests.distribute.small_impala:make_experiment"
PATIENCE = 240.0


class Member:
    """Knows addresses, and none of the third server."""

    def __init__(self):
        self.run = {"tables": [[], []]}
        self.known = {Task(REPLAY, 0): "a:1", Task(REPLAY, 1): "b:1"}

    def address_of(self, task):
        return self.known.get(task)

    wait_for_address_of = address_of


def test_servers_of_the_board_are_at_their_newest_addresses():
    member = Member()
    servers = remote_work.BoardServers(member)
    assert servers.wait()
    assert (servers.first, servers.addresses()) == ("a:1", ["a:1", "b:1"])
    member.known[Task(REPLAY, 1)] = "c:1"
    assert servers.addresses() == ["a:1", "c:1"]
    assert not servers.has_moved()
    member.known[Task(REPLAY, 0)] = "c:2"
    assert servers.has_moved()
    assert servers.first == "a:1"


def test_a_process_that_is_stopped_does_not_wait_for_servers():
    member = Member()
    del member.known[Task(REPLAY, 1)]
    assert not remote_work.BoardServers(member).wait()


@pytest.fixture(scope="module")
def run():
    """The settings of a run without tables."""
    return {"settings": {}}


def until(condition):
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_a_worker_joins_again_when_its_server_is_lost_and_not_after_other_errors(
    coordinator, monkeypatch
):
    numbers = []

    def work(member, make_experiment, host):
        numbers.append(member.number)
        if member.number == 0:
            raise replay_service.errors.ReplayUnavailable("It is gone.")
        raise ValueError("wrong")

    monkeypatch.setattr(remote_work, "_work", work)
    monkeypatch.setattr(remote_work, "_PAUSE", 0.0)
    with pytest.raises(ValueError, match="wrong"):
        worker.main(
            [
                "--role=actor",
                f"--experiment={EXPERIMENT}",
                f"--coordinator=localhost:{coordinator.port}",
            ]
        )
    assert numbers == [0, 1]
    until(lambda: coordinator.worker(Task(ACTOR)).ending is not None)
    ending = coordinator.worker(Task(ACTOR)).ending
    assert ending["lost"] is None
    assert "ValueError: wrong" in ending["error"]


def test_a_server_is_started_again_at_its_last_address_if_that_is_free(monkeypatch):
    ports = []

    def make_server(port):
        ports.append(port)
        if port == 7:
            raise OSError("in use")
        return port

    assert remote_work._start(make_server, "a", None) is None
    assert remote_work._start(make_server, "a", "a:5") == 5
    assert remote_work._start(make_server, "a", "b:5") is None
    assert remote_work._start(make_server, "a", "a:7") is None
    assert ports == [None, 5, None, 7, None]


@pytest.mark.parametrize("name", ["no_colon", ":function", "module:"])
def test_the_name_of_an_experiment_has_a_module_and_a_function(name):
    with pytest.raises(ValueError, match="expected 'package\\.module:function'"):
        remote_work.load(name)


def test_the_module_of_an_experiment_does_not_begin_the_run(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "unguarded_training.py").write_text(
        "from tfrl import distribute\n"
        "def make_experiment(): ...\n"
        "distribute.run_distributed(None, None, 2, 10)\n"
    )
    with pytest.raises(RuntimeError, match="'unguarded_training' is imported"):
        remote_work.load("unguarded_training:make_experiment")
    remote_work.check_no_import()


def test_this_host_has_an_address_by_which_itself_is_reached():
    assert remote_work._own_host("127.0.0.1:8000") == "127.0.0.1"
