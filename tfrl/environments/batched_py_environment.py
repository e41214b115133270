"""`BatchedPyEnvironment`: several Python environments as one batched environment."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Sequence
from concurrent import futures
from typing import Any, Literal

import numpy as np
from typing_extensions import override

from tfrl.compilation import processors
from tfrl.environments import batches, py_environment, thread_counts
from tfrl.environments.batches import unstack_actions
from tfrl.trajectories import time_step as ts

__all__ = ["BatchedPyEnvironment", "unstack_actions"]


class BatchedPyEnvironment(batches.BatchOfMembers):
    """Steps its members one after the other, or in threads.

    Each member resets itself when its own episode has ended. An exception of a member
    is raised with its own type and a note that names the member. If several members
    raise, the exception of the first one is raised.
    """

    def __init__(
        self,
        envs: Sequence[py_environment.PyEnvironment],
        multithreading: bool | Literal["fastest"] = True,
    ):
        """Batches `envs`.

        Args:
          envs: Environments with equal specs, none of them batched.
          multithreading: Whether each member is called on its own thread. "fastest"
            times a few steps with one thread, one for each processor, and one for each
            member, and again every 5,000 steps; it is for members that do not wait for
            each other. The results are the same.

        Raises:
          ValueError: If `envs` is empty, a member is batched, or their specs differ, or
            `multithreading` has another value.
        """
        super().__init__(handle_auto_reset=False)
        self._envs = list(envs)
        if not self._envs or any(env.batched for env in self._envs):
            raise ValueError(
                f"envs: got {envs!r}, expected at least one environment and no batched "
                "one; give the single environments."
            )
        batches.check_equal_specs("envs", self._envs)
        if multithreading not in (True, False, "fastest"):
            raise ValueError(
                f"multithreading: got {multithreading!r}, expected True, False or "
                "'fastest'."
            )
        self._batch_size = len(self._envs)
        self._action_spec = self._envs[0].action_spec()
        self._time_step_spec = self._envs[0].time_step_spec()
        self._closed = False
        # Unlike a multiprocessing pool, this pool gives no warning if it is left open.
        self._threads = (
            futures.ThreadPoolExecutor(len(self._envs)) if multithreading else None
        )
        most = self._batch_size
        counts = [1, min(processors.number(), most), most]
        self._thread_counts = thread_counts.ThreadCounts(
            counts if multithreading == "fastest" else [most if multithreading else 1]
        )

    def current_time_step(self) -> ts.TimeStep:
        """Returns the members' current time steps.

        Raises:
          ValueError: If a member was never reset.
        """
        return self._stack([env.current_time_step() for env in self._envs])

    def render(self, mode: str = "rgb_array") -> Any:
        """Returns the members' pictures, `[B, height, width, 3]`."""
        pictures = self._call("render", [(mode,)] * self.batch_size)
        return None if mode == "human" else np.stack(pictures)

    def close(self) -> None:
        """Closes the members, and ends the threads."""
        if self._closed:
            return
        if self._threads is not None:
            # First: threads take no calls at the end of the program.
            self._threads.shutdown()
            self._threads = None
        try:
            self._call("close")
        finally:
            self._closed = True

    def _reset(self) -> ts.TimeStep:
        return self._stack(self._call("reset"))

    def _step(self, action: Any) -> ts.TimeStep:
        actions = batches.unstack_actions(action, self.batch_size)
        start = time.perf_counter()
        time_steps = self._call("step", [(member,) for member in actions])
        self._thread_counts.took(time.perf_counter() - start)
        return self._stack(time_steps)

    def _stack(self, time_steps: list[ts.TimeStep]) -> ts.TimeStep:
        return batches.stack_time_steps(
            time_steps, self.time_step_spec(), lambda index: f"envs[{index}]"
        )

    @override
    def _apply(
        self,
        what: str,
        function: Callable[..., Any],
        arguments: Sequence[tuple[Any, ...]],
    ) -> list[Any]:
        """Calls `function` for each member, then raises the first member's error."""
        if self._closed:
            raise RuntimeError(
                "BatchedPyEnvironment: got a call after close(), expected an open "
                "environment; make another one."
            )

        calls = list(zip(self._envs, arguments, strict=True))

        def call(index: int) -> Any:
            member, args = calls[index]
            try:
                return function(member, *args)
            except Exception as error:
                # The exception keeps its own type, which callers may handle.
                error.add_note(f"This is from envs[{index}] of a BatchedPyEnvironment.")
                return _Failure(error)

        results = self._on_threads(call)
        for result in results:
            if isinstance(result, _Failure):
                raise result.error
        return results

    def _on_threads(self, call: Callable[[int], Any]) -> list[Any]:
        """Returns the results of a function of the members' indices."""
        members = range(self._batch_size)
        threads, count = self._threads, self._thread_counts.next()
        if threads is None or count == 1:
            return [call(index) for index in members]
        # Thread i has the i-th part of the members, and all parts are nearly equal.
        ends = [part * len(members) // count for part in range(count + 1)]
        parts = [members[a:b] for a, b in itertools.pairwise(ends)]
        of_parts = threads.map(lambda part: [call(index) for index in part], parts)
        return list(itertools.chain.from_iterable(of_parts))


class _Failure:
    """Holds the exception of a member."""

    def __init__(self, error: Exception):
        self.error = error
