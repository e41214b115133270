"""Descriptions of tables, and how servers start, answer and end."""

import _thread
import os
import pathlib
import signal
import socket
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
import tensorflow as tf

from tfrl.replay_service import (
    checkpointers,
    errors,
    item_selectors,
    rate_limiters,
    server_process,
)
from tfrl.replay_service import client as clients
from tfrl.replay_service.server import Server, Table, TableExtensionBase
from tfrl.replay_service.transport import connection

# Of localhost, for a hundred years; made by openssl for these tests alone.
DATA = pathlib.Path(__file__).parent / "data"
CERTIFICATE = (DATA / "certificate.pem").read_bytes()
KEY = (DATA / "key.pem").read_bytes()

SIGNATURE = {"a": tf.TensorSpec([None, 2], tf.float32, "a")}


def make_table(name="t", **kwargs):
    arguments = {
        "sampler": item_selectors.Prioritized(0.8),
        "remover": item_selectors.Fifo(),
        "max_size": 100,
        "rate_limiter": rate_limiters.SampleToInsertRatio(4, 10, 8),
    }
    return Table(name, **(arguments | kwargs))


def is_alive(pid):
    try:
        os.kill(pid, 0)
    except OSError:
        return False
    with open(f"/proc/{pid}/stat") as file:  # Nobody may have reaped it.
        return file.read().rpartition(")")[2].split()[0] != "Z"


@pytest.fixture(scope="module")
def served():
    tables = [make_table(signature=SIGNATURE), Table.queue("q", 3)]
    server = Server(tables)
    yield server, *tables
    server.stop()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"name": ""}, "name must be nonempty"),
        ({"max_size": 0}, r"max_size \(0\) must be a positive integer"),
        ({"max_size": -1}, "must be a positive integer"),
        ({"signature": np.zeros(3)}, "Unsupported signature spec"),
        ({"signature": [3]}, "Unsupported signature spec: 3"),
        ({"rate_limiter": rate_limiters.MinSize(101)}, "got min_size_to_sample 101"),
        ({"extensions": [3]}, "extensions: got"),
    ],
)
def test_table_that_cannot_be_is_refused(change, message):
    with pytest.raises(ValueError, match=message):
        make_table(**change)


@pytest.mark.parametrize("argument", ["max_size", "max_times_sampled"])
def test_sizes_are_whole_numbers(argument):
    assert getattr(make_table(**{argument: 1e3}).info, argument) == 1000
    for value in (0.5, "10", float("inf")):
        with pytest.raises(TypeError, match=f"{argument}: got .*, expected a whole"):
            make_table(**{argument: value})


@pytest.mark.parametrize("argument", ["sampler", "remover", "rate_limiter"])
def test_what_is_no_strategy_is_refused(argument):
    with pytest.raises(TypeError, match=f"{argument}: got <class 'object'>.*expected"):
        make_table(**{argument: object})


def test_extensions_are_abstract():
    with pytest.raises(TypeError):
        TableExtensionBase()


@pytest.mark.parametrize(
    ("made", "selector"),
    [(Table.queue, item_selectors.Fifo()), (Table.stack, item_selectors.Lifo())],
)
def test_queues_and_stacks_sample_each_item_once(made, selector):
    config = made("x", 7, signature=SIGNATURE).to_config()
    assert config["sampler"] == config["remover"] == selector.to_config()
    assert config["max_times_sampled"] == 1
    assert config["max_size"] == 7
    assert config["rate_limiter"]["max_diff"] == 7
    assert config["signature"] is not None


def test_table_that_is_not_served_is_empty():
    table = make_table(signature=SIGNATURE, max_times_sampled=3)
    info = table.info
    assert table.name == info.name == "t"
    assert info.sampler_options.prioritized.priority_exponent == 0.8
    assert info.sampler_options.WhichOneof("distribution") == "prioritized"
    assert not info.sampler_options.is_deterministic
    assert info.remover_options.fifo
    assert info.remover_options.is_deterministic
    assert not info.remover_options.HasField("heap")
    assert (info.max_size, info.max_times_sampled) == (100, 3)
    limiter = info.rate_limiter_info
    assert (limiter.samples_per_insert, limiter.min_size_to_sample) == (4, 10)
    assert (limiter.min_diff, limiter.max_diff) == (32, 48)
    assert limiter.insert_stats.completed == limiter.sample_stats.completed == 0
    assert info.current_size == info.num_episodes == 0
    assert info.signature == SIGNATURE
    assert table.can_insert(12)
    assert not table.can_insert(13)
    assert not table.can_sample(1)


@pytest.mark.parametrize(
    ("selector", "min_heap"),
    [(item_selectors.MinHeap(), True), (item_selectors.MaxHeap(), False)],
)
def test_info_tells_heaps_apart(selector, min_heap):
    options = make_table(sampler=selector).info.sampler_options
    assert options.WhichOneof() == "heap"
    assert options.heap.min_heap is min_heap


def test_replace_keeps_what_is_not_given():
    table = make_table(signature=SIGNATURE, max_times_sampled=3)
    assert table.replace().to_config() == table.to_config()
    changed = table.replace(name="u", max_size=50, max_times_sampled=0)
    assert changed.to_config() == table.to_config() | {
        "name": "u",
        "max_size": 50,
        "max_times_sampled": 0,
    }


def test_table_goes_through_its_configuration():
    table = make_table(signature=SIGNATURE)
    copy = Table.from_config(table.to_config())
    assert copy.to_config() == table.to_config()
    assert copy.info.signature == copy.replace().info.signature == SIGNATURE
    assert "name=t" in repr(table)
    assert "priority_exponent=0.8" in repr(table)


def test_empty_signature_is_none():
    assert make_table(signature={}).to_config()["signature"] is None


def test_server_needs_tables_of_different_names():
    with pytest.raises(ValueError, match="At least one table must be provided"):
        Server([])
    with pytest.raises(ValueError, match=r"Multiple items in tables .* name: t"):
        Server([make_table(), make_table(), make_table("u")])


def test_server_for_other_hosts_needs_a_token(monkeypatch):
    monkeypatch.delenv("TFRL_REPLAY_TOKEN", raising=False)
    with pytest.raises(ValueError, match=r"host: got '0\.0\.0\.0'.*token"):
        Server([make_table()], host="0.0.0.0")


def test_port_in_use_is_an_error_that_names_it(served):
    server, *_ = served
    with pytest.raises(OSError, match=f"port: {server.port} is in use.*port=None"):
        Server([make_table()], port=server.port)


def test_port_that_is_none_is_refused():
    with pytest.raises(ValueError, match="port: got 70000"):
        Server([make_table()], port=70_000)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"seed": -1}, "seed: got -1, expected an integer of 0 or more"),
        ({"port": "8000"}, "port: got '8000', expected an integer from 0 to 65535"),
        ({"port": True}, "port: got True"),
        ({"seed": 1.5}, "seed: got 1.5"),
        ({"token": 123}, "token: got another value, expected a text"),
        ({"token": ""}, "token: got '', expected a text that is not empty"),
        ({"host": 5}, "host: got 5"),
        ({"tls": ("a", "b")}, "tls: expected a pair of bytes"),
        ({"tls": (KEY, CERTIFICATE)}, "tls: got no certificate chain in the PEM"),
        (
            {"tls": (CERTIFICATE[:99], KEY)},
            "tls: cannot use the certificate chain and the private key",
        ),
    ],
)
def test_arguments_that_cannot_be_are_named(options, message):
    with pytest.raises(ValueError, match=message):
        Server([make_table()], **options)


def test_process_that_does_not_start_is_an_error(monkeypatch):
    monkeypatch.setattr(server_process, "_CODE", "raise SystemExit(3)")
    with pytest.raises(RuntimeError, match=r"exit code 3.*can import tfrl"):
        Server([make_table()])
    killed = "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"
    monkeypatch.setattr(server_process, "_CODE", killed)
    with pytest.raises(RuntimeError, match="was killed by SIGKILL while it started"):
        Server([make_table()])
    monkeypatch.setattr(server_process, "_CODE", "import time; time.sleep(60)")
    monkeypatch.setattr(server_process, "_START_DEADLINE", 0.2)
    with pytest.raises(RuntimeError, match="did not come up within"):
        Server([make_table()])


def test_served_table_tells_what_the_server_holds(served):
    server, table, queue = served
    client = server.localhost_client()
    client.reset("t")
    for _ in range(12):
        client.insert({"a": np.ones(2, np.float32)}, {"t": 1.0})
    assert table.info.current_size == 12
    assert table.info.rate_limiter_info.insert_stats.completed == 12
    assert table.info.num_episodes == 12
    assert table.can_sample(16)
    assert not table.can_sample(17)
    assert not table.can_insert(1)
    assert queue.info.current_size == 0
    assert queue.can_insert(3)
    assert client.server_info()["t"].signature == SIGNATURE


def test_server_shows_its_port_and_tables(served):
    server, table, _ = served
    assert repr(server).startswith(f"Server(port={server.port}, tables=[Table(")
    assert repr(table) in repr(server)


def test_a_server_goes_on_from_the_last_good_checkpoint_and_keeps_it(
    start_server, tmp_path, capfd
):
    checkpointer = checkpointers.DefaultCheckpointer(tmp_path)

    def start():
        return start_server([Table.queue("q", 9)], checkpointer=checkpointer)

    first = start()
    client = first.localhost_client()
    paths = []
    for i in range(2):
        client.insert(i, {"q": 1.0})
        paths.append(pathlib.Path(client.checkpoint()))
    first.stop()
    (steps,) = paths[1].glob("steps-0-0.npy")
    steps.write_bytes(steps.read_bytes()[:-1] + b"\x55")
    client = start().localhost_client()
    assert client.server_info()["q"].current_size == 1
    assert f"{paths[1]} is refused: its file steps-0-0.npy" in capfd.readouterr().err
    newest = client.checkpoint()
    assert {str(path) for path in tmp_path.iterdir()} == {str(paths[0]), newest}


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_server_process_has_no_tensorflow(served):
    server, *_ = served
    server.localhost_client().checkpoint()
    with open(f"/proc/{server._process.pid}/maps") as file:
        maps = file.read()
    assert "numpy" in maps
    assert "tensorflow" not in maps


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_stop_ends_the_process_and_leaves_nothing(monkeypatch):
    # As where a sitecustomize prints something.
    noisy = "print('hello'); print(3); " + server_process._CODE
    monkeypatch.setattr(server_process, "_CODE", noisy)
    table = make_table()
    server = Server([table], port=None)
    port, pid = server.port, server._process.pid
    directory = server._process._directory
    assert os.stat(directory).st_mode & 0o777 == 0o700
    stopped = threading.Timer(0.1, server.stop)
    stopped.start()
    server.wait()
    stopped.join()
    assert not is_alive(pid)
    assert not os.path.exists(directory)
    server.stop()
    server.wait()
    with pytest.raises(errors.ReplayUnavailable, match="has been stopped"):
        _ = table.info
    with socket.socket() as other:
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        other.bind(("127.0.0.1", port))


def test_token_and_tls_protect_a_server(monkeypatch, tmp_path):
    monkeypatch.setenv("TFRL_REPLAY_TOKEN", "from the environment")
    server = Server([make_table()], host="127.0.0.1", tls=(CERTIFICATE, KEY))
    assert "t" in server.localhost_client().server_info()
    monkeypatch.delenv("TFRL_REPLAY_TOKEN")
    stranger = clients.Client(
        f"localhost:{server.port}", tls_root_certificates=CERTIFICATE, token="guess"
    )
    with pytest.raises(errors.AuthenticationError, match="TFRL_REPLAY_TOKEN"):
        stranger.server_info()
    nonsense = clients.Client("localhost:1", tls_root_certificates=b"nonsense")
    with pytest.raises(ValueError, match="tls_root_certificates: got 8 bytes without"):
        nonsense.server_info()
    in_clear = clients.Client(
        f"localhost:{server.port}", token="from the environment", timeout=0.1
    )
    with pytest.raises(errors.ReplayUnavailable):
        in_clear.server_info()
    threading.Timer(0.1, _thread.interrupt_main).start()
    with pytest.raises(KeyboardInterrupt):
        server.wait()
    os.kill(server._process.pid, signal.SIGKILL)
    with pytest.raises(RuntimeError, match=f"port {server.port}.*has died.*-9"):
        server.wait()
    server.stop()


def test_the_environment_names_the_files_of_a_certificate(monkeypatch, tmp_path):
    for name, content in (("CERTIFICATE", CERTIFICATE), ("KEY", KEY)):
        path = tmp_path / name
        path.write_bytes(content)
        monkeypatch.setenv(f"TFRL_REPLAY_TLS_{name}", str(path))
    monkeypatch.setenv("TFRL_REPLAY_TRANSPORT", "tcp")
    server = Server([make_table()], token="secret")
    # A client has no key.
    monkeypatch.delenv("TFRL_REPLAY_TLS_KEY")
    client = clients.Client(f"localhost:{server.port}", token="secret")
    assert "t" in client.server_info()
    monkeypatch.delenv("TFRL_REPLAY_TLS_CERTIFICATE")
    in_clear = clients.Client(f"localhost:{server.port}", token="secret", timeout=0.1)
    with pytest.raises(errors.ReplayUnavailable, match="only accepts encrypted"):
        in_clear.server_info()
    server.stop()
    monkeypatch.setenv("TFRL_REPLAY_TLS_CERTIFICATE", str(tmp_path / "nowhere"))
    with pytest.raises(ValueError, match=r"TLS_CERTIFICATE: cannot read.*No such"):
        in_clear.server_info()
    monkeypatch.setenv("TFRL_REPLAY_TLS_KEY", str(tmp_path / "KEY"))
    with pytest.raises(ValueError, match=r"tls_certificate.*nowhere"):
        Server([make_table()])


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_server_ends_with_a_parent_that_is_killed():
    code = (
        "import time\n"
        "from tfrl.replay_service.server import Server, Table\n"
        "server = Server([Table.queue('q', 3)])\n"
        "path = server._checkpointer.path\n"
        "print(server._process.pid, server._process._directory, path, flush=True)\n"
        "time.sleep(60)\n"
    )
    parent = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, text=True
    )
    pid, directory, checkpoints = parent.stdout.readline().split()
    assert is_alive(int(pid))
    assert os.path.exists(checkpoints)
    parent.kill()
    parent.wait()
    parent.stdout.close()
    deadline = time.monotonic() + 5
    while is_alive(int(pid)) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not is_alive(int(pid))
    assert not os.path.exists(directory)
    assert not os.path.exists(checkpoints)


@pytest.mark.skipif(sys.platform != "linux", reason="limits another process")
def test_a_full_disk_is_said_and_the_server_continues(tmp_path):
    import resource

    checkpointer = checkpointers.DefaultCheckpointer(tmp_path)
    server = Server([Table.queue("q", 3)], checkpointer=checkpointer)
    client = server.localhost_client()
    client.insert(np.zeros(10_000), {"q": 1.0})
    limits = resource.prlimit(server._process.pid, resource.RLIMIT_FSIZE)
    tight = (10_000, limits[1])
    resource.prlimit(server._process.pid, resource.RLIMIT_FSIZE, tight)
    with pytest.raises(errors.ResourceExhaustedError, match=r"no room .* directory\.$"):
        client.checkpoint()
    assert os.listdir(tmp_path) == []
    resource.prlimit(server._process.pid, resource.RLIMIT_FSIZE, limits)
    assert os.path.isdir(client.checkpoint())
    server.stop()


def test_a_directory_that_cannot_be_written_to_is_an_error_at_the_start(tmp_path):
    (tmp_path / "file").write_text("")
    checkpointer = checkpointers.DefaultCheckpointer(tmp_path / "file" / "x")
    with pytest.raises(
        NotADirectoryError, match="checkpoint_path: cannot write"
    ) as told:
        Server([make_table()], checkpointer=checkpointer)
    assert str(told.value).count("[Errno") == 1


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="locks directories")
def test_what_killed_servers_leave_is_deleted_at_the_next_start(tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    code = (
        "import time\n"
        "from tfrl.replay_service.server import Server, Table\n"
        "server = Server([Table.queue('q', 3)])\n"
        "print(server._process.pid, server.port, flush=True)\n"
        "time.sleep(60)\n"
    )
    parents = [
        subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
        for _ in range(2)
    ]
    (pid, _), (_, port) = [map(int, p.stdout.readline().split()) for p in parents]
    of_both = set(os.listdir(tmp_path))
    assert len(of_both) == 4
    # Neither can delete anything: the child is killed before its parent.
    os.kill(parents[0].pid, signal.SIGSTOP)
    os.kill(pid, signal.SIGKILL)
    parents[0].kill()
    parents[0].communicate()
    assert set(os.listdir(tmp_path)) == of_both
    server = Server([Table.queue("q", 3)])
    assert len(of_both & set(os.listdir(tmp_path))) == 2
    server.stop()
    assert "q" in clients.Client(f"localhost:{port}").server_info()
    parents[1].kill()
    parents[1].communicate()


def test_servers_and_clients_of_a_process_take_its_own_token_first(monkeypatch):
    monkeypatch.setenv(connection.TOKEN_VARIABLE, "of the environment")
    try:
        connection.set_default_token("its own")
        server = Server([make_table()])
        address = f"localhost:{server.port}"
        assert clients.Client(address).server_info()
        with pytest.raises(errors.AuthenticationError):
            clients.Client(address, token="of the environment").server_info()
        server.stop()
    finally:
        connection.set_default_token(None)
    assert connection.default_token() == "of the environment"
