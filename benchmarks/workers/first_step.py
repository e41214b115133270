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
    from tfrl import train
    from tfrl.eval import evaluate
    from tfrl.policies import policy_saver
    from tfrl.train import loop

    imported = time.time()
    within: dict[str, float] = {}

    def timed(owner: Any, name: str, part: str) -> None:
        method = getattr(owner, name)

        @functools.wraps(method)
        def call(*arguments: Any, **keywords: Any) -> Any:
            started = time.time()
            value = method(*arguments, **keywords)
            within[part] = within.get(part, 0.0) + time.time() - started
            return value

        setattr(owner, name, call)

    timed(cli, "make_environment", "environments")
    timed(train_dqn, "make_agent", "agent")
    timed(train_dqn, "make_replay_buffer", "replay buffer")
    timed(train.OffPolicyLoop, "__init__", "loop")
    timed(evaluate.Evaluator, "run", "first evaluation")
    timed(policy_saver.PolicySaver, "__init__", "policy traced for saving")
    timed(policy_saver.PolicySaver, "save", "first policy saved")
    train_many = loop.Loop.run

    def train_once(self: Any, count: int) -> None:
        started = time.time()
        train_many(self, count)
        now = time.time()
        within["first call of the loop"] = now - started
        marks = {
            "reached": _REACHED,
            "tensorflow imported": tensorflow_imported,
            "imported": imported,
            "trained": now,
        }
        sys.stdout.flush()
        os.write(1, json.dumps({"marks": marks, "within": within}).encode())
        os._exit(0)

    loop.Loop.run = train_once
    cli.start(train_dqn.main)


if __name__ == "__main__":
    main()
