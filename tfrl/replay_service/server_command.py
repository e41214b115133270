"""The command `tfrl-replay-server`, which runs an independent replay server.

    tfrl-replay-server --port 8000 --table name=experience,max_size=100000,min_size=1000

A table of the command accepts any items. A program can start a server whose tables have
signatures or other rate limiters:

    replay_service.Server([replay_service.Table(..., signature=spec)], port=8000).wait()
"""

from __future__ import annotations

import argparse
import logging
import math
import os
import sys
from collections.abc import Mapping, Sequence, Set
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
    """Returns the server's configuration, made from the flags.

    Raises:
      OSError: If a directory cannot be used.
      ValueError: If a flag is invalid, or a file that it names cannot be used.
    """
    if options.config is not None:
        raise ValueError(
            f"--config: got {options.config!r}, but the command reads no files; give "
            "each table as --table KEY=VALUE,... and the other settings as flags, or "
            "start tables with signatures from a program: replay_service.Server(tables,"
            " port).wait()."
        )
    settings = {name: getattr(options, name) for name in _SETTINGS}
    server_settings.check(settings, where="--")
    tables = [_make_table(text) for text in options.table or []]
    if not tables:
        raise ValueError("no tables: give --table.")
    names = [table.name for table in tables]
    if len(set(names)) < len(names):
        raise ValueError(f"tables: got the names {names}, expected distinct names.")
    host = settings["host"] or "localhost"
    token = settings["token"] or os.environ.get("TFRL_REPLAY_TOKEN") or None
    addresses.check_exposure(host, token)
    path = settings["checkpoint_path"]
    return {
        "tables": [table.to_config() for table in tables],
        "host": host,
        "port": settings["port"] or 0,
        "token": token,
        "tls": server_settings.read_tls(
            settings["tls_certificate"], settings["tls_key"]
        ),
        "seed": settings["seed"],
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
    parser.add_argument("--config", help=argparse.SUPPRESS)  # Only for its error.
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


_TEXTS = {"name", "kind", "sampler", "remover"}
_NUMBERS = {"samples_per_insert", "error_buffer"}
_LEAST = {"max_size": 1, "max_times_sampled": 0, "min_size": 1}
_KEYS = sorted({*_TEXTS, *_NUMBERS, *_LEAST})


def _make_table(text: str) -> Table:
    """Creates the table of a --table flag."""
    try:
        return _table(_parsed(text))
    except ValueError as error:
        raise ValueError(f"--table {text!r}: {error}") from None


def _parsed(text: str) -> dict[str, Any]:
    """Returns the values of a --table flag, by key."""
    settings: dict[str, Any] = {}
    for part in text.split(","):
        key, equals, value = part.partition("=")
        if not equals or key not in _KEYS:
            raise ValueError(
                f"got {part!r}, expected KEY=VALUE with one of the keys {_KEYS}."
            )
        if key in settings:
            raise ValueError(f"got {key} twice, expected it once.")
        settings[key] = _value(key, value)
    return settings


def _value(key: str, text: str) -> Any:
    """Returns the value of a key from its text."""
    if key in _TEXTS:
        return text
    try:
        number = int(text) if key in _LEAST else float(text)
    except ValueError:
        number = math.nan
    least = _LEAST.get(key, -math.inf)
    if not (math.isfinite(number) and number >= least):
        expected = f"an integer of {least} or more" if key in _LEAST else "a number"
        raise ValueError(f"{key}: got {text!r}, expected {expected}.")
    return number


def _table(settings: Mapping[str, Any]) -> Table:
    """Creates a table from the values of its keys."""
    kind = settings.get("kind", "table")
    if kind not in ("queue", "stack", "table"):
        raise ValueError(f"kind: got kind {kind!r}, expected queue, stack or table.")
    name, max_size = settings.get("name", ""), settings.get("max_size", 1_000_000)
    if kind != "table":
        rest = settings.keys() - {"kind", "name", "max_size"}
        _check_useless(rest, f"kind {kind!r} determines them")
        make = Table.queue if kind == "queue" else Table.stack
        return make(name, max_size)
    min_size = settings.get("min_size", 1)
    ratio = settings.get("samples_per_insert")
    if ratio is None:
        rest = settings.keys() & {"error_buffer"}
        _check_useless(rest, "only samples_per_insert needs it")
        limiter: rate_limiters.RateLimiter = rate_limiters.MinSize(min_size)
    else:
        buffer = settings.get("error_buffer", max(1.0, ratio) * min_size)
        limiter = rate_limiters.SampleToInsertRatio(ratio, min_size, buffer)
    return Table(
        name,
        _selector(settings.get("sampler", "uniform")),
        _selector(settings.get("remover", "fifo")),
        max_size,
        limiter,
        settings.get("max_times_sampled", 0),
    )


def _check_useless(keys: Set[str], reason: str) -> None:
    if keys:
        raise ValueError(
            f"{', '.join(sorted(keys))}: got a value that has no effect, because "
            f"{reason}; leave it out."
        )


def _selector(text: str) -> item_selectors.ItemSelector:
    """Returns the selector of a name or of prioritized:EXPONENT."""
    kind, colon, exponent = text.partition(":")
    config: dict[str, Any] = {"kind": kind}
    if kind == "prioritized":
        try:
            config["priority_exponent"] = float(exponent) if colon else 1.0
        except ValueError:
            raise ValueError(
                f"sampler, remover: got {exponent!r}, expected a number."
            ) from None
    return item_selectors.from_config(config)


if __name__ == "__main__":
    sys.exit(main())
