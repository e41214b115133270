"""The command that starts a replay server of its own."""

import pathlib
import re
import signal
import subprocess
import sys

import numpy as np
import pytest

from tfrl.command import replay_server
from tfrl.replay_service import item_selectors, rate_limiters
from tfrl.replay_service.client import Client
from tfrl.replay_service.table import Table
from tfrl.replay_service.transport import connection

# See tests/replay_service/test_server.py.
DATA = pathlib.Path(__file__).parents[1] / "replay_service" / "data"
CERTIFICATE, KEY, OTHER_KEY = (
    (DATA / f"{name}.pem").read_bytes() for name in ("certificate", "key", "other_key")
)


def config_of(*arguments):
    given = replay_server.define_flags()
    given(["tfrl", *arguments])
    return replay_server.make_config(given)


@pytest.fixture(autouse=True)
def no_token(monkeypatch):
    monkeypatch.delenv("TFRL_REPLAY_TOKEN", raising=False)


@pytest.mark.parametrize(
    ("flag", "table"),
    [
        (
            "name=a",
            Table(
                "a",
                item_selectors.Uniform(),
                item_selectors.Fifo(),
                1_000_000,
                rate_limiters.MinSize(1),
            ),
        ),
        (
            "name=a,sampler=prioritized:0.6,remover=min_heap,max_size=50,min_size=9,"
            "max_times_sampled=3",
            Table(
                "a",
                item_selectors.Prioritized(0.6),
                item_selectors.MinHeap(),
                50,
                rate_limiters.MinSize(9),
                3,
            ),
        ),
        (
            "name=a,min_size=10,samples_per_insert=4,error_buffer=8",
            Table(
                "a",
                item_selectors.Uniform(),
                item_selectors.Fifo(),
                1_000_000,
                rate_limiters.SampleToInsertRatio(4, 10, 8),
            ),
        ),
        ("name=a,kind=queue,max_size=7", Table.queue("a", 7)),
        ("name=a,kind=stack,max_size=7", Table.stack("a", 7)),
    ],
)
def test_flag_describes_a_table(flag, table):
    assert config_of("--table", flag)["tables"] == [table.to_config()]


def test_flags_come_together(tmp_path):
    config = config_of(
        *("--host", "127.0.0.1", "--port", "2", "--seed", "3", "--table", "name=u"),
        *("--checkpoint_path", str(tmp_path), "--table", "name=v", "--token", "t"),
    )
    assert [table["name"] for table in config["tables"]] == ["u", "v"]
    assert (config["port"], config["host"], config["seed"]) == (2, "127.0.0.1", 3)
    assert config["checkpointer"]["path"] == str(tmp_path)
    assert (config["token"], config["tls"]) == ("t", None)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "no tables: give --table"),
        (["--table", "name=a", "--table", "name=a"], "expected distinct names"),
        (
            ["--table", "name=a,size=3"],
            "'name=a,size=3': got 'size=3'.*KEY=VALUE.*'max_size'",
        ),
        (["--table", "name=a,max_size=many"], "max_size: got 'many'"),
        (["--table", "name=a,max_size=1.5"], "max_size: got '1.5', expected an integ"),
        (["--table", "name=a,max_times_sampled=-1"], "sampled: got '-1', .* 0 or more"),
        (["--table", "name=a,min_size=x"], "min_size: got 'x', .* of 1 or more"),
        (["--table", "name=a,samples_per_insert=x"], "got 'x', expected a number"),
        (["--table", "name=a,samples_per_insert=0"], "samples_per_insert"),
        (
            ["--table", "name=a,samples_per_insert=2,error_buffer=nan"],
            "error_buffer: got 'nan', expected a number",
        ),
        (
            ["--table", "name=a,samples_per_insert=2,error_buffer=-inf"],
            "error_buffer: got '-inf', expected a number",
        ),
        (["--table", "name=a,samples_per_insert=inf"], "got 'inf', expected a number"),
        (["--table", "name=a,kind=stack,sampler=lifo"], "because kind 'stack'"),
        (["--table", "max_size=3"], "name must be nonempty"),
        (["--table", "name=a,max_size=3,min_size=4"], "got min_size_to_sample 4"),
        (["--table", "name=a,sampler=best"], "got the kind 'best'"),
        (["--table", "name=a,sampler=prioritized:x"], "got 'x', expected a number"),
        (["--table", "name=a,kind=heap"], "got kind 'heap'"),
        (["--table", "name=a", "--host", "0.0.0.0"], "expected a token"),
        (["--table", "name=a", "--tls_key", "k"], "give both or neither"),
        (
            ["--config", "server.json"],
            r"--config: got 'server.json', but .* each table as --table .*Server\(",
        ),
        (["--table", "name=a", "--port", "70000"], "--port: got 70000"),
        (["--table", "name=a", "--seed", "-1"], "--seed: got -1, expected an integer"),
        (["--table", "name=a", "--token", ""], "--token: got '', expected a text"),
        (["--table", "name=a", "--checkpoint_path="], "--checkpoint_path: got ''"),
        (["--table", "name=a,name=b"], "'name=a,name=b': got name twice"),
        (["--table", "name=a,max_size=0"], "'name=a,max_size=0': max_size: got '0'"),
        (
            ["--table", "name=a,kind=queue,min_size=3,sampler=fifo"],
            "min_size, sampler: got a value that has no effect, because kind 'queue'",
        ),
        (["--table", "name=a,error_buffer=3"], "only samples_per_insert needs it"),
    ],
)
def test_what_is_wrong_is_said(arguments, message, capsys):
    with pytest.raises(SystemExit) as caught:
        replay_server.main(arguments)
    assert caught.value.code == 2
    assert re.search(message, capsys.readouterr().err)


def test_command_serves_until_it_is_told_to_end(tmp_path):
    command = [
        *(sys.executable, "-m", "tfrl", "replay-server"),
        *("--table", "name=t,sampler=fifo", "--checkpoint_path", str(tmp_path)),
    ]
    keys = []
    for _ in range(2):
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        line = process.stdout.readline()
        address, _, tables = line.removeprefix("Replay server at ").partition(", ")
        assert tables == "tables: t\n"
        client = Client(address)
        if not keys:
            client.insert(np.float32(3), {"t": 1.0})
            assert client.checkpoint().startswith(str(tmp_path))
        (sample,) = client.sample("t")
        keys.append(sample[0].info.key)
        assert sample[0].data[0] == 3
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 0
        assert process.stdout.read() == "Replay server ended.\n"
        process.stdout.close()
    assert keys[0] == keys[1]


@pytest.mark.skipif(not hasattr(signal, "SIGHUP"), reason="needs SIGHUP")
@pytest.mark.parametrize("is_ignored", [False, True])
def test_the_end_of_its_terminal_ends_it_in_order_unless_ignored(is_ignored):
    command = [sys.executable, "-m", "tfrl", "replay-server"]
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN) if is_ignored else None
    try:
        process = subprocess.Popen(
            [*command, "--table", "name=t"], stdout=subprocess.PIPE, text=True
        )
    finally:
        if is_ignored:
            signal.signal(signal.SIGHUP, before)
    process.stdout.readline()
    process.send_signal(signal.SIGHUP)
    if is_ignored:
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(0.5)
        process.send_signal(signal.SIGINT)
    assert process.wait(20) == 0
    assert process.stdout.read() == "Replay server ended.\n"
    process.stdout.close()


def test_files_of_a_certificate_and_its_key_are_read(tmp_path):
    certificate, key = write_pems(tmp_path, CERTIFICATE, KEY)
    config = config_of("--table=name=t", *tls_flags(certificate, key))
    assert config["tls"] == [CERTIFICATE.decode(), KEY.decode()]


@pytest.mark.parametrize(
    ("contents", "message"),
    [
        ((KEY, CERTIFICATE), r"tls_certificate: '.*first.pem' holds no certificate"),
        ((CERTIFICATE, b"x"), r"tls_key: '.*second.pem' holds no private key"),
        ((b"\xff\xfe", KEY), r"tls_certificate: '.*first.pem' holds no certificate"),
        ((CERTIFICATE, OTHER_KEY), "tls_certificate, tls_key: .*used together"),
        ((CERTIFICATE[:99], KEY), "tls_certificate, tls_key: .*used together"),
        ((None, KEY), "tls_certificate: cannot read .*first.pem': No such file"),
    ],
)
def test_files_that_are_none_of_tls_are_named(contents, message, tmp_path):
    paths = write_pems(tmp_path, *contents)
    with pytest.raises(ValueError, match=message):
        config_of("--table=name=t", *tls_flags(*paths))


def write_pems(folder, *contents):
    paths = [folder / "first.pem", folder / "second.pem"]
    for path, content in zip(paths, contents, strict=True):
        if content is not None:
            path.write_bytes(content)
    return paths


def tls_flags(certificate, key):
    return f"--tls_certificate={certificate}", f"--tls_key={key}"


@pytest.mark.parametrize("verbosity", ["info", "warning", "error"])
def test_connections_refusals_and_checkpoints_are_logged(verbosity):
    process = subprocess.Popen(
        [
            *(sys.executable, "-m", "tfrl", "replay-server"),
            *("--table", "name=t", f"--verbosity={verbosity}"),
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    address = process.stdout.readline().split()[3].rstrip(",")
    path = Client(address).checkpoint()
    link = connection.connect(address, "writer")
    link.send(99, {})
    link.receive(10)
    process.send_signal(signal.SIGTERM)
    _, log = process.communicate(timeout=20)
    assert process.returncode == 0
    expected = {
        "info": [
            "INFO A control has connected over the local socket from this host",
            "INFO A control from this host has disconnected",
            f"INFO Wrote the checkpoint {path} in ",
        ],
        "warning": [
            "WARNING There is no token: every user of this host can sample",
            "WARNING Refused a client from this host: Got a message of the unknown",
        ],
    }
    shown = {"info": ["info", "warning"], "warning": ["warning"], "error": []}
    for level, texts in expected.items():
        assert all((text in log) == (level in shown[verbosity]) for text in texts)
    assert verbosity != "error" or not log
