"""The command that starts a server of its own."""

import json
import re
import signal
import subprocess
import sys

import numpy as np
import pytest

from tfrl.replay_service import (
    item_selectors,
    rate_limiters,
    server_command,
)
from tfrl.replay_service.client import Client
from tfrl.replay_service.table import Table
from tfrl.specs import spec_json
from tfrl.specs.array_spec import ArraySpec


def config_of(*arguments):
    return server_command.make_config(server_command._parser().parse_args(arguments))


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


def test_file_and_flags_come_together(tmp_path):
    signature = spec_json.encode({"a": ArraySpec((None, 3), np.float32, "a")})
    table = Table.queue("q", 3).to_config() | {"signature": signature}
    path = tmp_path / "server.json"
    path.write_text(
        json.dumps(
            {
                "port": 1,
                "host": "127.0.0.1",
                "seed": 3,
                "checkpoint_path": str(tmp_path),
                "tables": [table, {"name": "u", "min_size": 5, "signature": signature}],
            }
        )
    )
    config = config_of("--config", str(path), "--port", "2", "--table", "name=v")
    assert config["tables"][0] == table
    assert config["tables"][1]["rate_limiter"]["min_size_to_sample"] == 5
    assert config["tables"][1]["signature"] == signature
    assert [table["name"] for table in config["tables"]] == ["q", "u", "v"]
    assert (config["port"], config["host"], config["seed"]) == (2, "127.0.0.1", 3)
    assert config["checkpointer"]["path"] == str(tmp_path)
    assert config["tls"] is None


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "no tables: give --table or --config"),
        (["--table", "name=a", "--table", "name=a"], "expected distinct names"),
        (["--table", "name=a,size=3"], "got 'size=3'.*expected KEY=VALUE.*'max_size'"),
        (["--table", "name=a,max_size=many"], "got 'many' for max_size"),
        (["--table", "max_size=3"], "name must be nonempty"),
        (["--table", "name=a,max_size=3,min_size=4"], "got min_size_to_sample 4"),
        (["--table", "name=a,sampler=best"], "got the kind 'best'"),
        (["--table", "name=a,sampler=prioritized:x"], "got 'x', expected a number"),
        (["--table", "name=a,kind=heap"], "got kind 'heap'"),
        (["--table", "name=a", "--host", "0.0.0.0"], "expected a token"),
        (["--table", "name=a", "--tls_key", "k"], "give both or neither"),
        (["--config", "no-such-file"], "No such file"),
    ],
)
def test_what_is_wrong_is_said(arguments, message, capsys):
    with pytest.raises(SystemExit) as caught:
        server_command.main(arguments)
    assert caught.value.code == 2
    assert re.search(message, capsys.readouterr().err)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "is not valid JSON"),
        ("[]", "expected an object"),
        ('{"prot": 3}', "expected an object with some of"),
        ('{"tables": [{"nam": "a"}]}', "expected an object with some of"),
        ('{"tables": [{"name": "a", "max_size": "3"}]}', "tables: .*'max_size': '3'"),
        ('{"tables": [{"name": "a", "signature": [3]}]}', "signature: got"),
    ],
)
def test_broken_file_is_refused(content, message, tmp_path):
    path = tmp_path / "server.json"
    path.write_text(content)
    with pytest.raises(ValueError, match=message):
        config_of("--config", str(path))


def test_command_serves_until_it_is_told_to_end(tmp_path):
    command = [
        *(sys.executable, "-m", "tfrl.replay_service.server_command"),
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
    command = [sys.executable, "-m", "tfrl.replay_service.server_command"]
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
