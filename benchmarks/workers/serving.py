"""A worker's side of the protocol: it makes tasks, and runs them when it is asked to.

Requests come as lines of JSON on standard input, each is answered by one line on
standard output; between them the worker sleeps. It begins with a line of its own:

    {"ready": {"python": "3.11.9", ...}}
    -> {"make": "dqn", "settings": {"envs": 8}}    <- {"made": 0, "facts": {}}
    -> {"run": 0, "count": 2000}                   <- {"seconds": 1.9, "counts": ...}

A request that fails is answered by `{"error": ...}`, the
end of its traceback.
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
    """Something to be measured.

    Attributes:
      run: does about as many iterations as it is told, waits for their end, and says
        how many of what it did: `{"iterations": 2000, "environment steps": 16000}`.
      facts: what else there is to know, such as the memory it takes.
      prepare: is called before each run, and is not measured.
    """

    run: Callable[[int], dict[str, int]]
    facts: Mapping[str, Any] = {}
    prepare: Callable[[], object] = lambda: None


def serve(
    makers: Mapping[str, Callable[..., Task]],
    packages: Sequence[str],
    facts: Mapping[str, Any] | None = None,
) -> None:
    """Answers requests until standard input ends, then ends the process.

    Args:
      makers: from the names of tasks to what makes them, given the settings.
      packages: the distributions whose versions are to be told.
      facts: what else to tell, such as numbers of threads.
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
    # Some peers leave servers and threads behind that would hold up an ordinary end.
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
    """Keeps standard output for answers; what else is printed goes to the errors."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    return answers


def _write(answers: Any, answer: Mapping[str, Any]) -> None:
    answers.write(json.dumps(answer) + "\n")
    answers.flush()
