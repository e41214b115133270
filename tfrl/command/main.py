"""Trains, plays and evaluates agents from the command line.

    tfrl train sac --env=Pendulum-v1       trains, and writes to logs/sac_Pendulum-v1_0
    tfrl tune sac --env=Pendulum-v1        searches settings with Optuna
    tfrl play --logdir=LOGDIR              plays the best policy of a run, and films it
    tfrl evaluate --logdir=LOGDIR          measures the best policy of a run
    tfrl report LOGDIR                     writes a report on a run
    tfrl record --logdir=LOGDIR            records episodes, to train offline from
    tfrl sweep sac --seeds=0..9            trains many seeds and settings, and compares
    tfrl compare 'logs/sac_*' logs/ppo_*   compares runs: a table, a sentence, a figure
    tfrl list                              lists algorithms, environments and settings
    tfrl replay-server                     serves replay to actors and learners
    tfrl completion bash                   prints completion for bash, zsh or fish

`tfrl COMMAND --help` has the flags of a command, and `tfrl train ALGORITHM --help` the
settings of an algorithm.
"""

from __future__ import annotations

import difflib
import io
import sys
from collections.abc import Callable

from tfrl.algorithms import registry
from tfrl.command import interrupts
from tfrl.system import threads


def main() -> None:
    """Runs the command that the program's arguments name."""
    interrupts.install()
    threads.set_up()
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # As standard error has it.
    words = sys.argv[1:]
    if not words or words[0] in ("--help", "-h", "help"):
        print(__doc__.strip())
        return
    name = words[0]
    if name not in COMMANDS:
        _refuse("command", name, COMMANDS)
    sys.argv = [f"tfrl {name}", *words[1:]]
    COMMANDS[name]()


def _refuse(what: str, name: str, known: object) -> None:
    """Exits with an error that suggests the nearest word.

    Args:
      what: The kind of word.
      name: The word that was given.
      known: The words that are allowed.
    """
    names = [str(each) for each in known]  # type: ignore[attr-defined]
    near = difflib.get_close_matches(name.lower().replace("-", "_"), names, n=1)
    meant = f"; did you mean {near[0]}?" if near else ""
    print(
        f"error: {what}: got {name!r}, expected one of {', '.join(names)}{meant}",
        file=sys.stderr,
    )
    sys.exit(2)


def _algorithm() -> str:
    """Takes the algorithm's name from the program's arguments."""
    command, *words = sys.argv
    if not words or words[0] in ("--help", "-h"):
        names = ", ".join(registry.CLASSES)
        print(f"{command} ALGORITHM [flags]\n\nAlgorithms: {names}")
        sys.exit()
    name = words[0]
    if name not in registry.CLASSES:
        _refuse("algorithm", name, registry.CLASSES)
    sys.argv = [f"{command} {name}", *words[1:]]
    return name


def _train() -> None:
    name = _algorithm()
    from tfrl.command import train

    train.main(name)


def _sweep() -> None:
    name = _algorithm()
    from tfrl.command import sweep

    sweep.main(name)


def _tune() -> None:
    name = _algorithm()
    from tfrl.command import tune

    tune.main(name)


def _compare() -> None:
    from tfrl.command import compare

    compare.main()


def _play() -> None:
    from tfrl.command import play

    play.main()


def _evaluate() -> None:
    from tfrl.command import evaluate

    evaluate.main()


def _report() -> None:
    from tfrl.command import report

    report.main()


def _record() -> None:
    from tfrl.command import record

    record.main()


def _list() -> None:
    from tfrl.command import listing

    listing.main()


def _replay_server() -> None:
    from tfrl.replay_service import server_command

    server_command.main()


def _completion() -> None:
    from tfrl.command import completion

    completion.main()


COMMANDS: dict[str, Callable[[], None]] = {
    "train": _train,
    "tune": _tune,
    "play": _play,
    "evaluate": _evaluate,
    "report": _report,
    "record": _record,
    "sweep": _sweep,
    "compare": _compare,
    "list": _list,
    "replay-server": _replay_server,
    "completion": _completion,
}
