"""Runs `tfrl train ddqn` up to the end of its first training step.

Its arguments are "wall" or "cpu", and the command's flags. It prints a line of JSON:
"marks" has the time at which this file was reached and the end of each part, in seconds
since the epoch or of processor time; "within" has the seconds in some of the parts.
"""

import functools
import json
import os
import sys
import time
from typing import Any

import examples  # noqa: F401  Sets the variables that TensorFlow reads.

_clock = time.process_time if sys.argv.pop(1) == "cpu" else time.time
_REACHED = _clock()


def main() -> None:
    """Runs the command; ends the process after its first training step."""
    import tensorflow  # noqa: F401

    tensorflow_imported = _clock()
    from tfrl import train
    from tfrl.algorithms import algorithm, dqn, worlds
    from tfrl.command import train as train_command
    from tfrl.eval import evaluate
    from tfrl.policies import policy_saver
    from tfrl.train.loops import collecting_loop

    imported = _clock()
    within: dict[str, float] = {}

    def timed(owner: Any, name: str, part: str) -> None:
        method = getattr(owner, name)

        @functools.wraps(method)
        def call(*arguments: Any, **keywords: Any) -> Any:
            started = _clock()
            value = method(*arguments, **keywords)
            within[part] = within.get(part, 0.0) + _clock() - started
            return value

        setattr(owner, name, call)

    timed(worlds, "make_environment", "environments")
    timed(algorithm.Algorithm, "make_agent", "agent")
    timed(dqn.DDQN, "make_replay_buffer", "replay buffer")
    timed(train.OffPolicyLoop, "__init__", "loop")
    timed(evaluate.Evaluator, "run", "first evaluation")
    timed(policy_saver.PolicySaver, "__init__", "policy traced for saving")
    timed(policy_saver.PolicySaver, "save", "first policy saved")
    timed(
        collecting_loop.CollectingLoop,
        "run_call",
        "calls of the loop, the first compiles it",
    )
    run_call = collecting_loop.CollectingLoop.run_call

    def run_until_trained(self: Any, most_iterations: int) -> Any:
        info = run_call(self, most_iterations)
        if self.iteration:
            marks = {
                "reached": _REACHED,
                "tensorflow imported": tensorflow_imported,
                "imported": imported,
                "trained": _clock(),
            }
            sys.stdout.flush()
            os.write(1, json.dumps({"marks": marks, "within": within}).encode())
            os._exit(0)
        return info

    collecting_loop.CollectingLoop.run_call = run_until_trained  # type: ignore[method-assign]
    train_command.start("dqn", "")


if __name__ == "__main__":
    main()
