"""Where the servers of a run are."""

from tfrl.distribute import servers as servers_lib
from tfrl.distribute.tasks import REPLAY, Task


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
    servers = servers_lib.BoardServers(member)
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
    assert not servers_lib.BoardServers(member).wait()
