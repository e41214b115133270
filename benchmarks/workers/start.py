"""Trains to the first update, and uses the agent; prints the seconds of each part.

Its arguments are a name in `CASES`, "wall" or "cpu", and a folder for the run. It
prints a line of JSON: the seconds to the first update, the seconds of each part,
without those of the parts within it, and those of a call of `predict`.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import importlib.abc
import json
import pathlib
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

_CLOCKS: dict[str, Callable[[], float]] = {
    "cpu": time.process_time,
    "wall": time.time,
}
# The packages whose imports are parts; the others count to the part that imports them.
_PACKAGES = ("tensorflow", "keras", "tensorflow_probability", "gymnasium", "tfrl")
_CALLS = 300


class Parts:
    """The seconds of parts of a program, which may be nested.

    Attributes:
      seconds: The seconds of each part, without those of the parts within it.
    """

    def __init__(self, clock: Callable[[], float], since: float) -> None:
        """Counts the time from `since` on to Python itself."""
        self._clock = clock
        self.seconds: dict[str, float] = {}
        self._open = ["Python itself"]
        self._since = since

    @contextlib.contextmanager
    def part(self, name: str) -> Iterator[None]:
        """Counts what runs in this context to a part."""
        self.charge()
        self._open.append(name)
        try:
            yield
        finally:
            self.charge()
            self._open.pop()

    def charge(self) -> None:
        """Adds the time since the last call to the innermost part."""
        now = self._clock()
        name = self._open[-1]
        self.seconds[name] = self.seconds.get(name, 0.0) + now - self._since
        self._since = now

    def timed(self, function: Callable[..., Any], name: str) -> Callable[..., Any]:
        """Returns a function whose calls count to a part."""

        @functools.wraps(function)
        def call(*arguments: Any, **keywords: Any) -> Any:
            with self.part(name):
                return function(*arguments, **keywords)

        return call


class Imports(importlib.abc.MetaPathFinder):
    """Counts the imports of each of `_PACKAGES` to a part."""

    def __init__(self, parts: Parts) -> None:
        """Counts to these parts."""
        self._parts = parts

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        """Returns the module's spec, with a loader that counts its time, or None."""
        package = name.partition(".")[0]
        if package not in _PACKAGES:
            return None
        for finder in sys.meta_path[sys.meta_path.index(self) + 1 :]:
            spec = finder.find_spec(name, path, target)
            if spec is not None:
                if spec.loader is not None:
                    spec.loader.exec_module = self._parts.timed(  # type: ignore[method-assign]
                        spec.loader.exec_module, f"import of {package}"
                    )
                return spec
        return None


def _pictures() -> Any:
    """Returns an environment whose observations are a dict with an image."""
    import gymnasium
    import numpy as np

    class Pictures(gymnasium.Env):
        """Shows where to go, as a picture and as numbers."""

        observation_space = gymnasium.spaces.Dict(
            {
                "picture": gymnasium.spaces.Box(0, 255, (36, 36, 3), np.uint8),
                "numbers": gymnasium.spaces.Box(-1.0, 1.0, (4,), np.float32),
            }
        )
        action_space = gymnasium.spaces.Discrete(3)

        def reset(self, **keywords: Any) -> Any:
            super().reset(**keywords)
            self._steps = 0
            return self.observation_space.sample(), {}

        def step(self, action: Any) -> Any:
            self._steps += 1
            observation = self.observation_space.sample()
            return observation, float(action == 1), False, self._steps >= 50, {}

    return Pictures()


# The name of the class, and the environment.
CASES: dict[str, tuple[str, Any]] = {
    "PPO on CartPole-v1": ("PPO", "CartPole-v1"),
    "DQN on CartPole-v1": ("DQN", "CartPole-v1"),
    "SAC on Pendulum-v1": ("SAC", "Pendulum-v1"),
    "A2C on CartPole-v1": ("A2C", "CartPole-v1"),
    "PPO on a dict with an image": ("PPO", _pictures),
}


def main(case: str, clock: str, folder: pathlib.Path) -> None:
    """Trains a case to its first update, and uses it; prints the parts' seconds."""
    now = _CLOCKS[clock]
    parts = Parts(now, 0.0 if clock == "cpu" else now())
    parts.charge()
    sys.meta_path.insert(0, Imports(parts))
    with parts.part("the rest"):
        name, environment = CASES[case]
        with parts.part("building"):
            algorithm = _build(parts, name, environment)
        loop = algorithm.loop
        with parts.part("compiling"):
            while not loop.trace_count():
                loop.run_call(1)
        with parts.part("first update"):
            while not loop.iteration:
                loop.run_call(1)
        to_update = sum(parts.seconds.values())
        with parts.part("evaluating 20 episodes"):
            algorithm.evaluate(20)
        _predict(parts, algorithm)
        with parts.part("saving"):
            algorithm.save(folder)
        with parts.part("first measurements for the log"):
            algorithm.learn(1, progress=False)
        with parts.part("writing a report"):
            from tfrl.reports import report

            report.write(
                [folder], folder / "report.html", evidence=[algorithm.evidence()]
            )
    calls = parts.seconds.pop("calls of predict") / _CALLS
    print(
        json.dumps(
            {
                "to the first update": to_update,
                "parts": parts.seconds,
                "a call of predict": calls,
            }
        )
    )


def _build(parts: Parts, name: str, environment: Any) -> Any:
    """Makes an algorithm whose loop's programs count the time of their traces."""
    import tfrl  # First, as programs do that want a shorter import of TensorFlow.

    tf: Any = importlib.import_module("tensorflow")
    make = tf.function

    def counted(function: Any = None, **options: Any) -> Any:
        if function is not None and options.get("autograph") is False:
            function = parts.timed(function, "tracing")
        return make(function, **options)

    tf.function = counted
    algorithm = getattr(tfrl, name)(environment, seed=0)
    algorithm.build()
    tf.function = make
    return algorithm


def _predict(parts: Parts, algorithm: Any) -> None:
    """Calls `predict` for one observation."""
    import numpy as np
    import tensorflow as tf

    spec = algorithm.environment.observation_spec()
    observation = tf.nest.map_structure(
        lambda x: np.zeros(x.shape, x.dtype.as_numpy_dtype), spec
    )
    with parts.part("first calls of predict"):
        for _ in range(3):
            algorithm.predict(observation)
    with parts.part("calls of predict"):
        for _ in range(_CALLS):
            algorithm.predict(observation)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], pathlib.Path(sys.argv[3]))
