"""The command of one process of a run on several hosts.

    python -m tfrl.distribute.worker --role=actor --index=0
        --experiment=package.module:function --coordinator=host:port

A `CommandLauncher` prints these commands; Slurm, Kubernetes or a person starts them.
The experiment is imported, never received: `function` takes the run's settings, which
come from the coordinator as JSON, as keyword arguments, and returns an `Experiment`.
The token is read from the environment variable TFRL_REPLAY_TOKEN.

A worker that loses the replay server joins again with the server's new address. Its
exit status is 0 at the end of the run, and 1 if it should be started again: after an
exception, or when the coordinator no longer answers.
"""

from __future__ import annotations

import argparse
import os
import sys
import traceback
from collections.abc import Sequence
from typing import NoReturn

from tfrl.distribute import process_roles
from tfrl.distribute.coordination import learner_group, remote_work


def main(arguments: Sequence[str] | None = None) -> int:
    """Works until the run ends; returns the exit status."""
    options = _parser().parse_args(arguments)
    return remote_work.work(
        process_roles.Task(options.role, options.index),
        options.coordinator,
        lambda **settings: remote_work.load(options.experiment)(**settings),
        host=options.host,
        patience=options.patience,
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m tfrl.distribute.worker",
        description="Does the work of one process of a run on several hosts.",
        epilog="The token of the run is read from TFRL_REPLAY_TOKEN.",
    )
    parser.add_argument("--role", choices=process_roles.ROLES, required=True)
    parser.add_argument("--index", type=int, default=0, help="number of the actor (0)")
    parser.add_argument(
        "--experiment",
        required=True,
        metavar="PACKAGE.MODULE:FUNCTION",
        help="the function that makes the experiment from the run's settings",
    )
    parser.add_argument("--coordinator", required=True, metavar="HOST:PORT")
    parser.add_argument(
        "--host", help="address of this host for the others (found by itself)"
    )
    parser.add_argument(
        "--patience",
        type=float,
        default=60.0,
        help="seconds to keep trying to reach the coordinator (60)",
    )
    return parser


def _run_command() -> NoReturn:
    """Runs `main`, and ends the process even if TensorFlow would wait for others."""
    try:
        status = main()
    except Exception:
        traceback.print_exc()
        status = 1
    if learner_group.has_begun():
        sys.stdout.flush()
        sys.stderr.flush()
        # At its end, a group's runtime waits for learners that have ended already.
        os._exit(status)
    sys.exit(status)


if __name__ == "__main__":
    _run_command()
