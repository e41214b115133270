"""The command `tfrl-replay-server`, which runs an independent replay server.

    tfrl-replay-server --port 8000 --table name=experience,max_size=100000,min_size=1000

    tfrl-replay-server --config server.json

The file holds an object with "tables" and optionally "host", "port", "token",
"checkpoint_path", "tls_certificate", "tls_key" and "seed". Flags override the file. The
fields of a table are the keys of `--table`, or the names of `Table`'s arguments:

    {"port": 8000, "tables": [
      {"name": "experience", "max_size": 100000, "min_size": 1000,
       "signature": {"dict": {"reward": {"shape": [null], "dtype": "float32"}}}}]}

Signatures have the form of `tfrl.specs.spec_json`. A table without a signature accepts
any items.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tfrl.replay_service import item_selectors, rate_limiters, server_settings
from tfrl.replay_service.checkpointers import DefaultCheckpointer
from tfrl.replay_service.table import Table
from tfrl.replay_service.transport import addresses

_SETTINGS = (
    "host",
    "port",
    "token",
    "checkpoint_path",
    "tls_certificate",
    "tls_key",
    "seed",
)
_TABLE_HELP = """A table, as KEY=VALUE,... with the keys
name;
max_size (1000000);
sampler and remover: fifo, lifo, uniform, prioritized:EXPONENT, min_heap or max_heap
(uniform and fifo);
max_times_sampled (0, no limit);
min_size, the number of items needed for sampling (1);
samples_per_insert and error_buffer, which make writers and samplers wait for each other
(without samples_per_insert, they do not wait);
kind: queue or stack. Each item of such a table is sampled once, and only the keys name
and max_size go with kind. The flag can be repeated."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Serves until SIGINT or SIGTERM; returns the exit code."""
    parser = _parser()
    options = parser.parse_args(arguments)
    try:
        config = make_config(options)
    except (OSError, ValueError) as error:
        parser.error(str(error))
    return _serve(config, options.verbosity)


def make_config(options: argparse.Namespace) -> dict[str, Any]:
    """Returns the server's configuration, made from the flags and the config file.

    Raises:
      OSError: If a file cannot be read.
      ValueError: If a flag or the file is invalid.
    """
    settings = _read_config(options.config) if options.config else {}
    flags = {
        name: getattr(options, name)
        for name in _SETTINGS
        if getattr(options, name) is not None
    }
    server_settings.check(flags, where="--")
    settings.update(flags)
    tables = [
        _make_table(table, f"--config: tables: {table!r:.200}: ")
        for table in settings.get("tables") or []
    ]
    tables += [
        _make_table(_parse_table(text), f"--table {text!r}: ")
        for text in options.table or []
    ]
    if not tables:
        raise ValueError("no tables: give --table or --config with tables.")
    names = [table.name for table in tables]
    if len(set(names)) < len(names):
        raise ValueError(f"tables: got the names {names}, expected distinct names.")
    host = settings.get("host") or "localhost"
    token = settings.get("token") or os.environ.get("TFRL_REPLAY_TOKEN") or None
    addresses.check_exposure(host, token)
    path = settings.get("checkpoint_path")
    return {
        "tables": [table.to_config() for table in tables],
        "host": host,
        "port": settings.get("port") or 0,
        "token": token,
        "tls": server_settings.read_tls(
            settings.get("tls_certificate"), settings.get("tls_key")
        ),
        "seed": settings.get("seed"),
        "checkpointer": path and DefaultCheckpointer(path).to_config(),
    }


def _serve(config: Mapping[str, Any], verbosity: str) -> int:
    # This imports the server, which takes time that --help should not need.
    from tfrl.replay_service.engine.serving import main as engine

    logger = logging.getLogger("tfrl")
    logging.basicConfig(format="%(asctime)s %(levelname)s %(message)s")
    logger.setLevel(verbosity.upper())
    if not config["token"]:
        logger.warning(
            "There is no token: every user of this host can sample, write and reset "
            "the tables. Set TFRL_REPLAY_TOKEN for the server and its clients."
        )
    names = ", ".join(table["name"] for table in config["tables"])

    def announce(port: int, _directory: str | None) -> None:
        address = addresses.join(config["host"], port)
        print(f"Replay server at {address}, tables: {names}", flush=True)

    try:
        engine.serve(config, announce, signals=True)
    except (OSError, ValueError) as error:
        print(f"tfrl-replay-server: error: {error}", file=sys.stderr)
        return 1
    print("Replay server ended.", flush=True)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="tfrl-replay-server",
        description="Serves replay tables to writers and samplers on any host.",
    )
    parser.add_argument("--config", help="a JSON file; see the module's documentation")
    parser.add_argument("--table", action="append", metavar="K=V,...", help=_TABLE_HELP)
    parser.add_argument("--host", help="interface to listen on (localhost)")
    parser.add_argument("--port", type=int, help="port to listen on (a free one)")
    parser.add_argument(
        "--token",
        help="token that clients have to know; other users of this host can see flags, "
        "so prefer the environment variable TFRL_REPLAY_TOKEN",
    )
    parser.add_argument(
        "--checkpoint_path", help="directory of checkpoints; starts from the last one"
    )
    parser.add_argument("--tls_certificate", help="PEM file of a certificate chain")
    parser.add_argument("--tls_key", help="PEM file of its private key")
    parser.add_argument(
        "--verbosity",
        choices=("debug", "info", "warning", "error"),
        default="info",
        help="what to log on stderr: info has connections and checkpoints, warning "
        "has refused clients (info)",
    )
    parser.add_argument("--seed", type=int, help="seed of random choices")
    return parser


def _read_config(path: str) -> dict[str, Any]:
    try:
        with open(path, encoding="utf-8") as file:
            settings = json.load(file)
    except OSError as error:
        raise ValueError(
            f"--config: cannot read {path!r}: {error.strerror}."
        ) from error
    except ValueError as error:
        raise ValueError(f"--config: {path} is not valid JSON: {error}.") from None
    if not isinstance(settings, dict) or not server_settings.SERVER.keys() >= {
        *settings
    }:
        raise ValueError(
            f"--config: {path} holds {settings!r:.200}, expected an object with some "
            f"of {sorted(server_settings.SERVER)}."
        )
    server_settings.check(settings, where=f"--config: {path}: ")
    return settings


def _parse_table(text: str) -> dict[str, Any]:
    """Returns the keys and values of a --table flag."""
    table: dict[str, Any] = {}
    for part in text.split(","):
        key, equals, value = part.partition("=")
        if not equals or key not in _CONVERT:
            raise ValueError(
                f"--table: got {part!r} in {text!r}, expected KEY=VALUE with one of "
                f"the keys {sorted(_CONVERT)}."
            )
        if key in table:
            raise ValueError(f"--table: got {key} twice in {text!r}, expected it once.")
        try:
            table[key] = _CONVERT[key](value)
        except ValueError:
            raise ValueError(
                f"--table: got {value!r} for {key} in {text!r}, expected a number."
            ) from None
    return table


_CONVERT: dict[str, Callable[[str], Any]] = {
    "name": str,
    "kind": str,
    "max_size": int,
    "sampler": str,
    "remover": str,
    "max_times_sampled": int,
    "min_size": int,
    "samples_per_insert": float,
    "error_buffer": float,
}


def _make_table(settings: Mapping[str, Any], where: str) -> Table:
    """Creates a table from the keys of --table, or from the keys of `to_config`."""
    if not isinstance(settings, dict) or not server_settings.TABLE.keys() >= {
        *settings
    }:
        raise ValueError(
            f"{where}expected an object with some of {sorted(server_settings.TABLE)}."
        )
    server_settings.check(settings, server_settings.TABLE, where)
    server_settings.check_combination(settings, where)
    settings = {name: v for name, v in settings.items() if v is not None}
    try:
        return _table(settings)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{where}{error}") from None


def _table(settings: Mapping[str, Any]) -> Table:
    name = settings.get("name", "")
    max_size = settings.get("max_size", 1_000_000)
    kind = settings.get("kind", "table")
    if kind in ("queue", "stack"):
        made = Table.queue if kind == "queue" else Table.stack
        config = made(name, max_size).to_config()
    elif kind == "table":
        config = {
            "name": name,
            "max_size": max_size,
            "sampler": _selector(settings.get("sampler", "uniform")),
            "remover": _selector(settings.get("remover", "fifo")),
            "max_times_sampled": settings.get("max_times_sampled", 0),
            "rate_limiter": _limiter(settings),
        }
    else:
        raise ValueError(f"kind: got kind {kind!r}, expected queue, stack or table.")
    return Table.from_config({**config, "signature": settings.get("signature")})


def _selector(given: Any) -> Any:
    """Returns a selector's configuration, from itself, a name or name:exponent."""
    if not isinstance(given, str):
        return given
    kind, colon, exponent = given.partition(":")
    config: dict[str, Any] = {"kind": kind}
    if kind == "prioritized":
        try:
            config["priority_exponent"] = float(exponent) if colon else 1.0
        except ValueError:
            raise ValueError(
                f"sampler, remover: got {exponent!r}, expected a number."
            ) from None
    item_selectors.from_config(config)  # Raises if the kind is unknown.
    return config


def _limiter(settings: Mapping[str, Any]) -> dict[str, Any]:
    if "rate_limiter" in settings:
        return settings["rate_limiter"]
    min_size = settings.get("min_size", 1)
    ratio = settings.get("samples_per_insert")
    if ratio is None:
        return rate_limiters.MinSize(min_size).to_config()
    buffer = settings.get("error_buffer", max(1.0, ratio) * min_size)
    return rate_limiters.SampleToInsertRatio(ratio, min_size, buffer).to_config()


if __name__ == "__main__":
    sys.exit(main())
