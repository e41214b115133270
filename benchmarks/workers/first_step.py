"""Runs `examples.train_dqn` up to the end of its first training step.

Takes the example's flags, and prints a line of JSON: seconds since the epoch when this
file was reached, and then at the end of each part, and the seconds within some of them.
"""

import time

_REACHED = time.time()

import functools  # noqa: E402
import json  # noqa: E402
import os  # noqa: E402
import sys  # noqa: E402
from typing import Any  # noqa: E402


def main() -> None:
    """Runs the example; ends the process once it has trained a step."""
    import examples  # noqa: F401  Imports TensorFlow.

    tensorflow_imported = time.time()
    from examples import cli, train_dqn
    from tfrl.eval import evaluate
    from tfrl.policies import policy_saver
    from tfrl.train import loop, run

    imported = time.time()
    within: dict[str, float] = {}
    built = 0.0

    def timed(owner: Any, name: str, part: str) -> None:
        method = getattr(owner, name)

        @functools.wraps(method)
        def call(*arguments: Any, **keywords: Any) -> Any:
            started = time.time()
            value = method(*arguments, **keywords)
            within[part] = within.get(part, 0.0) + time.time() - started
            return value

        setattr(owner, name, call)

    timed(evaluate.Evaluator, "run", "first evaluation")
    timed(policy_saver.PolicySaver, "save", "policy saved")
    run_all, train = run.Run.run, loop.Loop.run

    def start(self: Any) -> Any:
        nonlocal built
        built = time.time()
        return run_all(self)

    def train_once(self: Any, count: int) -> None:
        started = time.time()
        train(self, count)
        now = time.time()
        within["first call of the loop"] = now - started
        marks = {
            "reached": _REACHED,
            "tensorflow imported": tensorflow_imported,
            "imported": imported,
            "built": built,
            "trained": now,
        }
        sys.stdout.flush()
        os.write(1, json.dumps({"marks": marks, "within": within}).encode())
        os._exit(0)

    run.Run.run, loop.Loop.run = start, train_once
    cli.start(train_dqn.main)


if __name__ == "__main__":
    main()
