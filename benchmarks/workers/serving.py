"""The worker's side of the protocol: makes tasks, and runs them on request.

Each request is a line of JSON on standard input, and each answer is a line on standard
output; the worker sleeps between requests. Before the first request it writes a line:

    {"ready": {"python": "3.11.9", ...}}
    -> {"make": "dqn", "settings": {"envs": 8}}    <- {"made": 0, "facts": {}}
    -> {"run": 0, "count": 2000}                   <- {"seconds": 1.9, "counts": ...}

The answer to a request that fails is `{"error": ...}`, the end of its traceback.
"""

from __future__ import annotations

import importlib.metadata
import json
import os
import platform
import sys
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple


class Task(NamedTuple):
    """A piece of work to measure.

    Attributes:
      run: Does about the given number of iterations, waits for their end, and returns
        the counts by unit: `{"iterations": 2000, "environment steps": 16000}`.
      facts: Other facts, such as the memory that it takes.
      prepare: Is called before each run, and is not measured.
    """

    run: Callable[[int], dict[str, int]]
    facts: Mapping[str, Any] = {}
    prepare: Callable[[], object] = lambda: None


def calling(call: Callable[[], object]) -> Task:
    """Makes a task that calls a function again and again."""

    def run(count: int) -> dict[str, int]:
        for _ in range(count):
            call()
        return {"calls": count}

    return Task(run)


def serve(
    makers: Mapping[str, Callable[..., Task]],
    packages: Sequence[str],
    facts: Mapping[str, Any] | None = None,
) -> None:
    """Answers requests until standard input ends, then ends the process.

    Args:
      makers: Functions that make a task from settings, by the tasks' names.
      packages: The distributions whose versions are reported.
      facts: Other facts to report, such as numbers of threads.
    """
    answers = _take_standard_output()
    tasks: list[Task] = []
    versions = {name: importlib.metadata.version(name) for name in packages}
    ready = {"Python": platform.python_version(), **versions, **(facts or {})}
    _write(answers, {"ready": ready})
    for line in sys.stdin:
        try:
            answer = _answer(json.loads(line), makers, tasks)
        except Exception as error:
            answer = {"error": "".join(traceback.format_exception(error)[-2:])}
        _write(answers, answer)
    # Servers and threads of some peers would block an ordinary exit.
    os._exit(0)


def _answer(
    request: Mapping[str, Any],
    makers: Mapping[str, Callable[..., Task]],
    tasks: list[Task],
) -> dict[str, Any]:
    if "make" in request:
        task = makers[request["make"]](**request["settings"])
        tasks.append(task)
        return {"made": len(tasks) - 1, "facts": dict(task.facts)}
    run, _, prepare = tasks[request["run"]]
    prepare()
    started, cpu_started = time.perf_counter(), time.process_time()
    counts = run(request["count"])
    cpu_seconds = time.process_time() - cpu_started
    seconds = time.perf_counter() - started
    return {"seconds": seconds, "cpu_seconds": cpu_seconds, "counts": counts}


def _take_standard_output() -> Any:
    """Reserves standard output for answers; other output goes to standard error."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    return answers


def _write(answers: Any, answer: Mapping[str, Any]) -> None:
    answers.write(json.dumps(answer) + "\n")
    answers.flush()
