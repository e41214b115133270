"""The groups of learners of several processes, here in threads of this one."""

import threading
import time

import pytest

from tfrl.distribute.coordination import coordinator_client, learner_group
from tfrl.distribute.process_roles import LEARNER, Task

PATIENCE = 60.0


@pytest.fixture(scope="module")
def run():
    return {"num_learners": 2}


def join(coordinator, task):
    return coordinator_client.CoordinatorClient(f"localhost:{coordinator.port}", task)


def until(condition):
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_learners_train_together_when_all_of_them_are_new_processes(coordinator):
    def wait(member, peer):
        thread = threading.Thread(
            target=lambda: groups.__setitem__(peer, member.wait_for_group(peer))
        )
        thread.start()
        return thread

    groups = {}
    members = [join(coordinator, Task(LEARNER, number)) for number in range(2)]
    waiting = [wait(member, f"a:{i}") for i, member in enumerate(members)]
    for thread in waiting:
        thread.join(PATIENCE)
    assert groups["a:0"] == groups["a:1"]
    assert groups["a:0"]["addresses"] == ["a:0", "a:1"]
    assert members[1].loss_in(groups["a:0"]) is None
    # The second process of one learner waits for the second one of the other.
    again = join(coordinator, Task(LEARNER))
    thread = wait(again, "b:0")
    until(lambda: members[1].loss_in(groups["a:0"]) is not None)
    assert members[1].loss_in(groups["a:0"]) == (
        "another process has taken the place of learner/0"
    )
    members[1].leave(error="Traceback", lost="broken")
    until(lambda: again.loss_in(groups["a:0"]) is not None)
    assert "b:0" not in groups
    other = join(coordinator, Task(LEARNER, 1))
    wait(other, "b:1").join(PATIENCE)
    thread.join(PATIENCE)
    assert groups["b:1"]["addresses"] == ["b:0", "b:1"]
    other.leave(error="Traceback", lost="broken")
    until(lambda: again.loss_in(groups["b:1"]) is not None)
    assert again.loss_in(groups["b:1"]) == "the process of learner/1 has failed"
    for member in (members[0], again):
        member.leave(result=None)


def test_a_free_port_is_one_of_the_host():
    assert 0 < learner_group._free_port("127.0.0.1") < 1 << 16
