"""A server that starts again with its port."""

import functools

from tfrl import replay_service
from tfrl.distribute.servers import supervised_server
from tfrl.replay_service import server_process


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
    process = supervised_server.SupervisedServer(
        functools.partial(supervised_server.make_server, [table], tmp_path)
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
