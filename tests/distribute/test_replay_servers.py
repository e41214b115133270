"""Servers that are gone, or are started again."""

import functools
import threading

import pytest

from tfrl import replay_service
from tfrl.distribute import replay_servers
from tfrl.replay_service import errors, server_process


def made(addresses, now=lambda: 0.0):
    return replay_servers.CentralServer(replay_servers.FixedServers(addresses), now)


@pytest.fixture
def address():
    table = replay_service.Table.queue("t", 1)
    server = replay_service.Server([table])
    yield f"localhost:{server.port}"
    server.stop()


def fail():
    raise errors.ReplayUnavailable("gone.")


def test_the_loss_of_the_only_server_is_an_error():
    with pytest.raises(errors.ReplayUnavailable):
        made(("localhost:1",)).attempt(fail)


def test_the_loss_of_the_first_of_several_servers_is_none(address, caplog):
    seconds, calls = [0.0], []
    first = made((address, "localhost:1"), lambda: seconds[0])
    first.attempt(lambda: calls.append(0))
    first.attempt(fail)
    assert "weights and reports wait until it does" in caplog.text
    # It is not asked again at once.
    seconds[0] = 4.0
    first.attempt(lambda: calls.append(1))
    seconds[0] = 6.0
    first.attempt(lambda: calls.append(2))
    assert calls == [0, 2]


def test_a_call_that_hangs_ends_in_a_thread(address, caplog):
    """As on a server that has stopped after its answer to the first question."""
    seconds, calls, goes_on = [0.0], [], threading.Event()
    first = made((address, "localhost:1"), lambda: seconds[0])

    def hang():
        goes_on.wait()
        calls.append(0)

    first.attempt(hang, within=0.1)
    assert "(a call takes over 0.1 s): weights and reports wait" in caplog.text
    seconds[0] = 6.0
    first.attempt(lambda: calls.append(1))
    assert calls == []
    goes_on.set()
    while 2 not in calls:
        first.attempt(lambda: calls.append(2), within=10.0)
    assert calls == [0, 2]


@pytest.mark.parametrize("within", [None, 10.0])
def test_other_errors_are_raised(address, within):
    def refuse():
        raise ValueError("a wrong shape")

    with pytest.raises(ValueError, match="a wrong shape"):
        made((address, "localhost:1")).attempt(refuse, within=within)


def test_a_server_that_is_killed_while_it_starts_again_is_started_once_more(
    tmp_path, monkeypatch
):
    table = replay_service.Table(
        "t",
        replay_service.selectors.Uniform(),
        replay_service.selectors.Fifo(),
        max_size=1,
        rate_limiter=replay_service.rate_limiters.MinSize(1),
    )
    process = replay_servers.SupervisedServer(
        functools.partial(replay_servers.make_server, [table], tmp_path)
    )
    port = process.port
    assert process.start(0).poll() is None
    process.stop(0.0)
    with monkeypatch.context() as patched:
        killed = "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"
        patched.setattr(server_process, "_CODE", killed)
        assert process.start(1).poll().how == "was killed by SIGKILL"
        process.stop(0.0)
    try:
        assert process.start(2).poll() is None
        assert process.port == port
    finally:
        process.stop(0.0)
