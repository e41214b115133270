"""A server as a whole: what comes over its sockets, and how it ends."""

import contextlib
import json
import os
import socket
import struct
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

from tfrl.replay_service import checkpointers, errors, rate_limiters
from tfrl.replay_service import item_selectors as selectors
from tfrl.replay_service.engine.serving import main
from tfrl.replay_service.table import Table
from tfrl.replay_service.transport import connection, tcp_connection, wire

NO_KEYS = np.zeros(0, np.uint64)
needs_unix = pytest.mark.skipif(
    not hasattr(socket, "AF_UNIX"), reason="needs Unix sockets"
)


def make_config(**kwargs):
    limiter = rate_limiters.MinSize(1)
    table = Table("t", selectors.Fifo(), selectors.Fifo(), 1000, limiter)
    return {"tables": [table.to_config()], **kwargs}


@contextlib.contextmanager
def serving(**kwargs):
    """Serves in a thread of this process; yields (port, directory)."""
    ready, place, stop = threading.Event(), [], []

    def announce(*where):
        place.extend(where)
        ready.set()

    def run():
        try:
            main.serve(make_config(**kwargs), announce, on_start=stop.append)
        finally:
            ready.set()

    thread = threading.Thread(target=run)
    thread.start()
    # It collects garbage first, and what other tests have left may take long to end.
    assert ready.wait(150)
    try:
        yield tuple(place)
    finally:
        stop[0]()
        thread.join(10)
        assert not thread.is_alive()


@pytest.fixture(scope="module")
def server():
    with serving() as place:
        yield place


class Raw:
    """A client over TCP, which `connection.connect` would leave for the socket."""

    def __init__(self, port, role="control", **hello):
        self.stream = tcp_connection.connect(f"localhost:{port}", None, None, 20.0)
        self.send(wire.HELLO, {"protocol": wire.PROTOCOL, "role": role, **hello})
        self.welcome = self.receive().meta

    def send(self, *frame):
        self.stream.send(wire.encode(*frame))

    def receive(self):
        return wire.decode(self.stream.receive(20))

    def close(self):
        self.stream.close()


def connect(kind, port, role, **hello):
    if kind == "tcp":
        return Raw(port, role, **hello)
    link = connection.connect(
        f"localhost:{port}", role, shared=kind == "shared", hello=hello
    )
    assert link.welcome["local"] is not None
    return link


def write(link, steps, first=1):
    """Writes an item of each of the steps `[n, ...]` uint8."""
    count = len(steps)
    group = {"table": "t", "n": count, "columns": [[0, 0, True]], "lengths": [1]}
    group["episode"] = 0
    meta = {"keep": 0, "episode": 0, "groups": [group]}
    meta["schema"] = [["uint8", list(steps.shape[1:]), "x"]]
    numbers = np.arange(count)
    link.send(
        wire.WRITE,
        meta,
        [numbers, steps, numbers[:, None], np.ones(count), numbers + first],
    )
    return link.receive()


def sample(link, num):
    meta = {"table": "t", "num": num, "timeout_ms": 5000, "request": 0, "release": 0}
    link.send(wire.SAMPLE, meta)
    frames = [link.receive()]
    while not frames[-1].meta["done"]:
        frames.append(link.receive())
    return frames


@pytest.mark.parametrize(
    "kind", ["tcp", *(["unix", "shared"] if hasattr(socket, "AF_UNIX") else [])]
)
def test_large_messages_go_both_ways(server, kind):
    port, _ = server
    steps = np.random.default_rng(0).integers(0, 256, (50, 300, 1000), np.uint8)
    control = connect(kind, port, "control")
    control.send(wire.RESET, {"table": "t"})
    assert control.receive().kind == wire.OK
    writer = connect(kind, port, "writer")
    assert write(writer, steps).meta == {"confirmed": 50}
    reader = connect(kind, port, "sampler")
    frames = sample(reader, 3)
    schema = frames[0].meta["define"]["schema"]
    for frame in frames:
        for row in frame.arrays[5]:
            if kind == "shared":
                row = reader.arena(schema).columns[0][row[0]]
            np.testing.assert_array_equal(row, steps[0])
    for link in (control, writer, reader):
        link.close()


@needs_unix
def test_requests_are_answered_in_order_however_they_come(server):
    port, _ = server
    link = connect("unix", port, "control")
    message = b"".join(wire.encode(wire.INFO, {}))
    resets = b"".join(wire.encode(wire.RESET, {"table": "t"}))
    framed = b"".join(struct.pack("<I", len(m)) + m for m in (message, resets) * 200)
    raw = link._stream._socket
    raw.setblocking(True)
    for start in range(0, 300):  # One by one first, then all at once.
        raw.send(framed[start : start + 1])
    raw.sendall(framed[300:])
    raw.setblocking(False)
    kinds = [link.receive(20).kind for _ in range(400)]
    assert kinds == [wire.INFO_REPLY, wire.OK] * 200
    link.close()


@needs_unix
@pytest.mark.parametrize(
    "data",
    [
        struct.pack("<I", wire.MAX_FRAME + 1),
        struct.pack("<I", 0xFFFFFFFF) + bytes(100),
        struct.pack("<I", 4) + b"abcd",
        struct.pack("<I", 0),
        struct.pack("<I", 100) + bytes(200),
    ],
)
def test_bytes_that_are_no_message_end_a_connection_not_the_server(server, data):
    port, directory = server
    with socket.socket(socket.AF_UNIX) as stranger:
        stranger.settimeout(10)
        stranger.connect(os.path.join(directory, "s"))
        stranger.sendall(data)
        answer = b"".join(iter(lambda: stranger.recv(4096), b""))
    assert wire.decode(answer[4:]).meta["code"] == "protocol"
    link = connect("unix", port, "control")
    link.send(wire.INFO, {})
    assert link.receive(20).kind == wire.INFO_REPLY
    link.close()


def test_message_that_is_none_ends_a_connection_not_the_server(server):
    port, _ = server
    stranger = Raw(port)
    stranger.stream.send([b"nonsense"])
    assert stranger.receive().meta["code"] == "protocol"
    with pytest.raises(errors.ConnectionLost):
        stranger.receive()
    stranger.close()
    assert Raw(port).welcome["tables"] == {"t": {"signature": None}}


def test_many_calls_that_wait_do_not_keep_another_from_its_answer(server):
    port, _ = server
    control = Raw(port)
    control.send(wire.RESET, {"table": "t"})
    assert control.receive().kind == wire.OK
    waiting = [Raw(port, "sampler") for _ in range(20)]
    meta = {"table": "t", "num": 1, "timeout_ms": -1, "request": 0, "release": 0}
    for link in waiting:
        link.send(wire.SAMPLE, meta)
    control.send(wire.INFO, {})
    assert control.receive().kind == wire.INFO_REPLY
    writer = Raw(port, "writer")
    write(writer, np.ones((1, 2), np.uint8))
    for link in waiting:
        assert link.receive().meta["done"] is True
        link.close()
    control.close()
    writer.close()


@needs_unix
@pytest.mark.parametrize("kind", ["tcp", "unix"])
def test_client_that_does_not_read_is_not_served_ahead(server, kind):
    port, _ = server
    control = connect("unix", port, "control")
    control.send(wire.RESET, {"table": "t"})
    control.receive(20)
    write(connect("unix", port, "writer"), np.ones((1, 100_000), np.uint8))
    meta = {"table": "t", "num": 100_000, "timeout_ms": -1, "request": 0, "release": 0}
    slow = connect(kind, port, "sampler")
    slow.send(wire.SAMPLE, meta)
    counts = [-1, 0]
    while counts[-1] == 0 or counts[-1] > counts[-2]:
        time.sleep(0.1)
        control.send(wire.INFO, {})
        limiter = control.receive(20).meta["tables"][0]["rate_limiter_info"]
        counts.append(limiter["sample_stats"]["completed"])
    # A message has 335 items.
    assert 256 <= counts[-1] < 3000
    slow.close()
    control.close()


def test_server_goes_on_from_its_checkpoint(tmp_path):
    config = checkpointers.DefaultCheckpointer(tmp_path).to_config()
    steps = np.arange(10, dtype=np.uint8).reshape(5, 2)
    with serving(checkpointer=config) as (port, _):
        writer = Raw(port, "writer", writer_id="7")
        write(writer, steps)
        before = sample(writer, 2)[0].arrays
        writer.send(wire.CHECKPOINT, {})
        path = writer.receive().meta["path"]
        assert os.path.dirname(path) == str(tmp_path)
    with serving(checkpointer=config) as (port, _):
        writer = Raw(port, "writer", writer_id="7")
        assert writer.welcome["confirmed"] == 5
        after = sample(writer, 1)[0].arrays
        assert after[0] == before[0][0]
        assert after[4] == 3
        np.testing.assert_array_equal(after[5], steps[:1])


BUSY = """
import sys, json
sys.path[:] = json.loads(sys.stdin.buffer.readline())
from tfrl.replay_service.engine.serving import main
from tfrl.replay_service.engine.serving import protocols
from tfrl.replay_service.transport import wire
def hang(service, caller, frame):
    print(sorted(sys.modules), file=sys.stderr, flush=True)
    while True:
        pass
protocols._CONTROL[wire.INFO] = hang
main._GRACE = 0.2
main.child_main(int(sys.argv[1]))
"""


def test_busy_server_ends_with_its_parent_and_has_no_tensorflow():
    child = subprocess.Popen(
        [sys.executable, "-c", BUSY, str(os.getpid())],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    for line in (sys.path, make_config()):
        child.stdin.write(json.dumps(line).encode() + b"\n")
    child.stdin.flush()
    assert json.loads(child.stdout.readline()) == {"restoring": True}
    ready = json.loads(child.stdout.readline())
    link = Raw(ready["port"], "writer")
    write(link, np.ones((1, 2), np.uint8))
    sample(link, 1)
    link.send(wire.CHECKPOINT, {})
    assert link.receive().kind == wire.OK
    link.send(wire.INFO, {})
    modules = child.stderr.readline().decode()
    assert "'grpc'" not in modules
    assert "tensorflow" not in modules
    assert "keras" not in modules
    started = time.monotonic()
    child.stdin.close()
    child.wait(20)
    assert time.monotonic() - started < 5
    assert not os.path.exists(ready["directory"])
    child.stdout.close()
    child.stderr.close()


@pytest.mark.parametrize(
    ("change", "code", "text"),
    [
        ({"host": "192.0.2.1", "token": "x"}, "os", "cannot listen on '192.0.2.1'"),
        ({"tables": [{"name": "t"}]}, None, "max_size"),
    ],
)
def test_server_that_cannot_start_says_why(change, code, text):
    announced = []
    with pytest.raises((OSError, KeyError), match=text) as caught:
        main.serve(make_config(**change), announced.append)
    assert (code == "os") == isinstance(caught.value, OSError)
    assert announced == []
