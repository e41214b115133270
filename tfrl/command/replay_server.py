"""Runs a replay server of its own, for writers and samplers on any host.

    tfrl replay-server --port=8000 --table=name=experience,max_size=100000,min_size=1000

A --table, which accepts any items, is KEY=VALUE,... with the keys

    name
    max_size             1000000
    sampler, remover     fifo, lifo, uniform, prioritized:EXPONENT, min_heap or
                         max_heap; uniform and fifo
    max_times_sampled    0, for no limit
    min_size             the number of items needed for sampling; 1
    samples_per_insert   makes writers and samplers wait for each other, as
    error_buffer         error_buffer does; without it, they do not wait
    kind                 queue or stack, each item of which is sampled once; only name
                         and max_size go with it

A program can start a server whose tables have signatures or other rate limiters:

    replay_service.Server([replay_service.Table(..., signature=spec)], port=8000).wait()
"""

from __future__ import annotations

import logging
import math
import os
from collections.abc import Mapping, Sequence, Set
from typing import Any

from absl import flags

from tfrl.command import parsing, program
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


def main(words: Sequence[str]) -> None:
    """Serves by the flags in some words, until SIGINT or SIGTERM."""
    given = define_flags()
    program.start(
        given,
        words,
        lambda: _serve(make_config(given), given.verbosity),
        lambda: parsing.help_text(__doc__, given, ["config"]),
    )


def define_flags() -> flags.FlagValues:
    """Returns the flags of the command."""
    given = parsing.new(
        host="Interface to listen on, by default localhost.",
        token="Token that clients have to know; other users of this host can see "
        "flags, so prefer the environment variable TFRL_REPLAY_TOKEN.",
        checkpoint_path="Folder of checkpoints; starts from the last one.",
        tls_certificate="PEM file of a certificate chain.",
        tls_key="PEM file of its private key.",
        config="Only for its error.",
    )
    flags.DEFINE_multi_string(
        "table", None, "A table; give the flag once for each.", flag_values=given
    )
    for name, text in (
        ("port", "Port to listen on, by default a free one."),
        ("seed", "Seed of random choices."),
    ):
        flags.DEFINE_integer(name, None, text, flag_values=given)
    parsing.add_choice(
        given,
        "verbosity",
        "info",
        ["debug", "info", "warning", "error"],
        "What to log on stderr: info has connections and checkpoints, warning has "
        "refused clients.",
    )
    return given


def make_config(given: flags.FlagValues) -> dict[str, Any]:
    """Returns the server's configuration, made from the flags.

    Raises:
      OSError: If a directory cannot be used.
      ValueError: If a flag is invalid, or a file that it names cannot be used.
    """
    if given["config"].present:
        raise ValueError(
            f"--config: got {given.config!r}, but the command reads no files; give "
            "each table as --table KEY=VALUE,... and the other settings as flags, or "
            "start tables with signatures from a program: replay_service.Server(tables,"
            " port).wait()."
        )
    settings = {name: given[name].value for name in _SETTINGS}
    server_settings.check(settings, where="--")
    tables = [_make_table(text) for text in given.table or []]
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


def _serve(config: Mapping[str, Any], verbosity: str) -> None:
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

    engine.serve(config, announce, signals=True)
    print("Replay server ended.", flush=True)


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
