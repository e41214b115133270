"""Counts what a program does, rather than the time that it takes; prints JSON.

python -m benchmarks.workers.counting loop DQN
python -m benchmarks.workers.counting imports train --help
python -m benchmarks.workers.counting start
"""

from __future__ import annotations

import contextlib
import cProfile
import gc
import importlib
import io
import json
import sys
import types
from collections.abc import Callable, Iterable
from typing import Any

_ITERATIONS = 8
# Of the classes of algorithms; what is not here has its usual value.
_REPLAY = {"replay_capacity": 1000, "initial_collect_steps": 64}
LOOPS: dict[str, tuple[str, dict[str, Any]]] = {
    "DQN": ("CartPole-v1", _REPLAY),
    "PPO": ("CartPole-v1", {}),
    "SAC": ("Pendulum-v1", _REPLAY),
    "CrossQ": ("Pendulum-v1", _REPLAY),
    "IQL": ("Pendulum-v1", {}),
    "LinUCB": ("LinearBandit-v0", {}),
}


def loop(name: str) -> dict[str, float]:
    """Returns the counts of the runs of a loop in `LOOPS`.

    They are "launches" of the compiled program by a call of `run`, "calls of Python" by
    an iteration, the "functions of Python" in these, and all "traces".
    """
    import tfrl  # First, because it sets what TensorFlow reads.
    from tfrl.compilation.python_calls import host_calls
    from tfrl.train.loops import training_loop

    # A loop divides a run by the time that iterations take; here they take none.
    still: Any = types.SimpleNamespace(monotonic=lambda: 0.0)
    training_loop.time = still
    environment, settings = LOOPS[name]
    given = {"data": _recorded()} if name == "IQL" else {}
    made = getattr(tfrl, name)(environment, seed=0, **settings, **given)
    algorithm_loop = made.loop
    algorithm_loop.run(1)
    launches = algorithm_loop._call = _Counted(algorithm_loop._call)
    profile = cProfile.Profile(builtins=False)
    calls = []
    for site in host_calls._sites.values():
        calls.append(_Counted(_profiled(site._function, profile)))
        site._function = calls[-1]
    algorithm_loop.run(_ITERATIONS)
    return {
        "launches by a run": launches.count,
        "calls of Python": sum(each.count for each in calls) / _ITERATIONS,
        "functions of Python": _functions(profile) / _ITERATIONS,
        "traces": _traces(),
    }


class _Counted:
    """A callable that counts its calls."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function, self.count = function, 0

    def __call__(self, *arguments: Any, **keywords: Any) -> Any:
        self.count += 1
        return self._function(*arguments, **keywords)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._function, name)


def _profiled(
    function: Callable[..., Any], profile: cProfile.Profile
) -> Callable[..., Any]:
    return lambda *arguments: profile.runcall(function, *arguments)


def _functions(profile: cProfile.Profile) -> int:
    """Returns how many functions written in Python were entered.

    Those of the import system are left out: there are more of them if a module has not
    been compiled before.
    """
    stats: Iterable[Any] = profile.getstats()
    return sum(
        each.callcount
        for each in stats
        if isinstance(each.code, types.CodeType)
        and not each.code.co_filename.startswith("<frozen importlib")
    )


def _traces() -> int:
    """Returns the traces of all of TensorFlow's functions together."""
    import tensorflow as tf

    kind = type(tf.function(lambda: None))
    gc.collect()
    return sum(
        each.experimental_get_tracing_count()
        for each in gc.get_objects()
        if isinstance(each, kind)
    )


def _recorded() -> dict[str, Any]:
    """Returns 1,000 steps of Pendulum, of random numbers."""
    import numpy as np

    random = np.random.default_rng(0)
    steps = 1000
    return {
        "observations": random.normal(size=(steps, 3)),
        "actions": random.uniform(-2, 2, size=(steps, 1)),
        "rewards": random.normal(size=steps),
        "terminals": np.arange(1, steps + 1) % 200 == 0,
    }


def imports(*words: str) -> dict[str, float]:
    """Returns the number of "modules" that a command of tfrl imports.

    Args:
      *words: The words after `tfrl`; without any it is `import tfrl`.
    """
    before = len(sys.modules)
    importlib.import_module("tfrl")
    if words:
        sys.argv[1:] = words
        with contextlib.suppress(SystemExit), contextlib.redirect_stdout(io.StringIO()):
            importlib.import_module("tfrl.command.main").main()
    return {"modules": len(sys.modules) - before}


def start() -> dict[str, float]:
    """Returns the "thousands of functions" entered before DQN's first update.

    They vary by a thousandth from run to run, as no other count does.
    """
    profile = cProfile.Profile(builtins=False)
    with profile:
        tfrl: Any = importlib.import_module("tfrl")
        made = tfrl.DQN("CartPole-v1", seed=0, **_REPLAY)
        while not made.loop.iteration:
            made.loop.run_call(1)
    return {"thousands of functions": round(_functions(profile) / 1000)}


if __name__ == "__main__":
    _counts: dict[str, Callable[..., dict[str, float]]] = {
        "loop": loop,
        "imports": imports,
        "start": start,
    }
    print(json.dumps(_counts[sys.argv[1]](*sys.argv[2:])))
