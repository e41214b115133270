import asyncio
import contextlib
import gc
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import types

import numpy as np
import pytest

from tfrl.replay_service.engine.serving import arena_listener
from tfrl.replay_service.engine.storage import step_store
from tfrl.replay_service.transport import arena_view

pytestmark = pytest.mark.skipif(
    not hasattr(socket, "AF_UNIX") or os.name != "posix",
    reason="needs Unix sockets that pass files",
)
COLUMNS = [("float32", (2, 3)), ("int64", ()), ("bfloat16", (4,)), ("uint8", (0, 5))]
SECRET = "a secret"


@pytest.fixture
def store():
    made = step_store.StepStore(3, COLUMNS, shared=True)
    yield made
    made.close()


@contextlib.contextmanager
def listening(path, find):
    """Runs a listener in a loop of its own thread; yields the loop."""
    loop = asyncio.new_event_loop()

    async def start():
        return arena_listener.ArenaListener(path, SECRET, find)

    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    listener = asyncio.run_coroutine_threadsafe(start(), loop).result(5)
    try:
        yield loop
    finally:

        async def stop():
            listener.close()
            await asyncio.sleep(0)
            await asyncio.sleep(0)

        asyncio.run_coroutine_threadsafe(stop(), loop).result(5)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(5)
        loop.close()


@pytest.fixture
def path(store, tmp_path):
    heap = step_store.StepStore(4, COLUMNS, shared=False)
    path = str(tmp_path / "arena")
    with listening(path, {3: store, 4: heap}.get):
        yield path


def write(store, values):
    slots = store.allocate(len(values))
    store.write(
        slots,
        [
            np.broadcast_to(
                np.reshape(values, (-1, *(1 for _ in shape))), (len(values), *shape)
            ).astype(np.uint16 if dtype == "bfloat16" else dtype)
            for dtype, shape in COLUMNS
        ],
    )
    return slots


def ask(path, request):
    """Sends bytes and returns the answer."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(10)
        connection.connect(path)
        connection.sendall(request)
        return json.loads(connection.makefile("rb").readline() or b"null")


def test_a_reader_sees_what_is_written_before_and_after(store, path):
    first = write(store, [1, 2, 3])
    view = arena_view.attach(path, SECRET, 3)
    second = write(store, [4, 5])
    slots = np.concatenate([first, second])
    assert view.columns[1][slots].tolist() == [1, 2, 3, 4, 5]
    for column in (0, 1, 2, 3):
        read = np.take(view.columns[column], slots, axis=0, mode="clip")
        expected = store.read(column, slots)
        assert read.dtype == expected.dtype
        np.testing.assert_array_equal(read, expected)


def test_a_reader_cannot_write(store, path):
    view = arena_view.attach(path, SECRET, 3)
    for column in view.columns[:3]:
        assert not column.flags.writeable
        with pytest.raises(ValueError, match="WRITEABLE"):
            column.flags.writeable = True


def test_another_process_reads(store, path):
    slots = write(store, [10, 20, 30])
    program = (
        "import sys; from tfrl.replay_service.transport import arena_view\n"
        "view = arena_view.attach(sys.argv[1], sys.argv[2], 3)\n"
        "slots = [int(slot) for slot in sys.argv[3:]]\n"
        "print(view.columns[1][slots].tolist(), 'tensorflow' in sys.modules)"
    )
    arguments = [sys.executable, "-c", program, path, SECRET, *map(str, slots)]
    run = subprocess.run(
        arguments, capture_output=True, text=True, timeout=60, check=True
    )
    assert run.stdout == "[10, 20, 30] False\n"


def test_a_process_maps_a_schema_once_while_it_is_used(store, path):
    view = arena_view.attach(path, SECRET, 3)
    assert arena_view.attach(path, SECRET, 3) is view
    column = view.columns[1]
    slots = write(store, [8])
    del view
    gc.collect()
    assert (SECRET, 3) not in arena_view._views
    assert column[slots].tolist() == [8]


def test_a_view_outlives_its_server(store, path):
    slots = write(store, [6, 7])
    view = arena_view.attach(path, SECRET, 3)
    store.close()
    assert view.columns[1][slots].tolist() == [6, 7]


def test_a_silent_server_holds_up_no_reader_of_another(store, path, tmp_path):
    silent = str(tmp_path / "silent")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(silent)
        listener.listen()

        def wait():
            with contextlib.suppress(OSError):
                arena_view.attach(silent, SECRET, 5)

        waiting = threading.Thread(target=wait)
        waiting.start()
        connection, _ = listener.accept()
        with connection:
            assert connection.recv(100)  # It waits for the answer now.
            views = []
            reader = threading.Thread(
                target=lambda: views.append(arena_view.attach(path, SECRET, 3)),
                daemon=True,
            )
            reader.start()
            reader.join(5)  # Half as long as the other one waits.
            assert len(views) == 1
    waiting.join(10)


# Forking a process with threads is what is tested; Python 3.12 and later warn of it.
@pytest.mark.filterwarnings("ignore:.*use of fork:DeprecationWarning")
def test_a_fork_reads_although_the_lock_was_held(store, path):
    slots = write(store, [5])
    with arena_view._lock:
        child = os.fork()
        if not child:
            signal.alarm(10)
            view = arena_view.attach(path, SECRET, 3)
            os._exit(view.columns[1][slots].tolist() != [5])
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_no_descriptor_is_left_open(store, path):
    before = len(os.listdir("/dev/fd"))
    view = arena_view.attach(path, SECRET, 3)
    del view
    gc.collect()
    for _ in range(3):
        with pytest.raises(OSError, match="does not share"):
            arena_view.attach(path, "wrong", 3)
    deadline = time.monotonic() + 5
    while len(os.listdir("/dev/fd")) > before and time.monotonic() < deadline:
        time.sleep(0.01)
    assert len(os.listdir("/dev/fd")) <= before


@pytest.mark.parametrize(
    ("secret", "schema", "match"),
    [
        ("wrong", 3, "secret is another server's"),
        ("\ud800", 3, "malformed"),
        (SECRET, 5, "no steps of schema 5"),
        (SECRET, [], "no steps of schema"),
        (SECRET, 4, "not in memory that can be shared"),
    ],
)
def test_a_refusal_says_why(path, secret, schema, match):
    with pytest.raises(PermissionError, match=match):
        arena_view._attach(path, secret, schema)


def test_a_wrong_socket_is_an_error(tmp_path):
    with pytest.raises(FileNotFoundError):
        arena_view.attach(str(tmp_path / "none"), SECRET, 3)


def test_a_system_without_such_sockets_is_an_error(monkeypatch, path):
    monkeypatch.delattr(socket, "recv_fds")
    with pytest.raises(OSError, match="cannot pass memory"):
        arena_view.attach(path, SECRET, 3)


@pytest.mark.parametrize(
    "request_",
    [b"\n", b"null\n", b"[1]\n", b"{}\n", b"[" * 4000 + b"\n", b"\xff\n", b"x" * 5000],
    ids=["empty", "null", "list", "nothing", "deep", "binary", "long"],
)
def test_a_malformed_request_gets_an_answer(store, path, request_):
    assert "error" in ask(path, request_)
    assert arena_view.attach(path, SECRET, 3).columns


def test_silent_clients_are_dropped_and_hold_up_nobody(store, path, monkeypatch):
    monkeypatch.setattr(arena_listener, "_PATIENCE", 0.3)
    silent = [socket.socket(socket.AF_UNIX) for _ in range(100)]
    for connection in silent:
        connection.settimeout(10)
        connection.connect(path)
    assert len(arena_view.attach(path, SECRET, 3).columns) == 4
    for connection in silent:
        assert connection.recv(1) == b""
        connection.close()


def test_a_client_that_hangs_up_harms_nobody(store, path):
    for data in (b"", b"{"):
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(path)
            connection.sendall(data)
    assert len(arena_view.attach(path, SECRET, 3).columns) == 4


def damaged(**changes):
    def description(store):
        made = step_store.StepStore.description(store)
        made["columns"][0].update(changes.pop("column", {}))
        return {**made, **changes}

    return description


@pytest.mark.parametrize(
    "description",
    [
        damaged(size=1 << 60),
        damaged(size=0),
        damaged(rows=1 << 40),
        damaged(rows=-1),
        damaged(rows="many"),
        damaged(columns=None),
        damaged(column={"offset": 1 << 50}),
        damaged(column={"offset": -64}),
        damaged(column={"offset": 3}),
        damaged(column={"dtype": "object"}),
        damaged(column={"shape": [-1, -1]}),
        damaged(column={"shape": [1 << 62, 1 << 62]}),
    ],
)
def test_a_description_that_the_file_belies_is_refused(store, tmp_path, description):
    liar = types.SimpleNamespace(fd=store.fd, description=lambda: description(store))
    path = str(tmp_path / "liar")
    with (
        listening(path, lambda _: liar),
        pytest.raises(OSError, match="an invalid description"),
    ):
        arena_view.attach(path, SECRET, 3)


def test_many_columns_fit_in_an_answer(tmp_path):
    store = step_store.StepStore(3, [("float32", (3,))] * 4000, shared=True)
    path = str(tmp_path / "wide")
    with listening(path, lambda _: store):
        assert len(arena_view.attach(path, SECRET, 3).columns) == 4000
    store.close()
