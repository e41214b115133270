"""`ParallelPyEnvironment` joins environments in separate processes into one batch."""

from __future__ import annotations

import operator
import os
import pickle
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import cloudpickle
import numpy as np

from tfrl.environments import batches, process_py_environment, process_worker
from tfrl.environments.boundary import action_arrays
from tfrl.environments.process_py_environment import (
    EnvConstructor,
    ProcessPyEnvironment,
    Promise,
)
from tfrl.system import child_errors, child_process
from tfrl.trajectories import time_step as ts

__all__ = [
    "EnvConstructor",
    "ParallelPyEnvironment",
    "ProcessPyEnvironment",
    "Promise",
]


class ParallelPyEnvironment(batches.BatchOfMembers):
    """Steps its members in parallel, each in its own process, as a batch `[B, ...]`.

    Each member resets itself when its own episode has ended. If a member dies, raises
    or hangs, the call raises an error that names the member, and only `close` works
    afterwards. The members' processes end when this process ends.

    The constructors may come from any script, with or without an `if __name__ ==
    "__main__"`, and from notebooks.

    Separate processes are faster if a step takes longer than its messages, which take
    about a tenth of a millisecond. For smaller environments `BatchedPyEnvironment` is
    faster.
    """

    def __init__(
        self,
        env_constructors: Sequence[EnvConstructor],
        start_serially: bool = True,
        blocking: bool = False,
        flatten: bool = False,
        *,
        start_timeout: float | None = 300.0,
        step_timeout: float | None = 600.0,
    ):
        """Starts a process for each of `env_constructors`.

        Args:
          env_constructors: Functions that make the members, which must have equal
            specs. The functions are sent by cloudpickle.
          start_serially: Whether each member is made before the next one starts.
          blocking: Whether the members are stepped one after the other.
          flatten: Has no effect, and exists for TF-Agents; arrays are always sent flat.
          start_timeout: The number of seconds within which the members must start; None
            for no limit.
          step_timeout: The number of seconds within which the members must answer each
            call; None for no limit.

        Raises:
          TypeError: If a constructor is not a function, or does not pickle.
          ValueError: If there are no constructors, or the members' specs differ.
          ChildError: If a constructor raises or hangs, does not make a single
            `PyEnvironment`, or its process dies.
        """
        super().__init__(handle_auto_reset=False)
        if not isinstance(env_constructors, Sequence) or not env_constructors:
            raise ValueError(
                f"env_constructors: got {env_constructors!r}, expected at least one "
                "function that makes an environment; give a list of them."
            )
        self._blocking = blocking
        self._start_serially = start_serially
        self._start_timeout = start_timeout
        self._step_timeout = step_timeout
        self._failure: BaseException | None = None
        self._closed = False
        self._replies: list[child_process.Reply] = []  # Of the running step.
        self._shared: process_worker.SharedBatch | None = None
        self._envs = [
            ProcessPyEnvironment(
                constructor,
                flatten,
                start_timeout=start_timeout,
                step_timeout=step_timeout,
                name=f"env_constructors[{index}]",
            )
            for index, constructor in enumerate(env_constructors)
        ]
        self._batch_size = len(self._envs)
        try:
            self.start()
            # At the end of the program the members end together, not one by one.
            children = [env._usable() for env in self._envs]
            weakref.finalize(self, process_py_environment.stop, children)
        except BaseException as error:
            self._failure = error
            self.close()
            raise

    def start(self) -> None:
        """Starts the processes; the constructor calls it.

        Raises:
          RuntimeError: If the processes were already started.
        """
        for env in self._envs:
            env.start(wait_to_start=self._start_serially)
        if not self._start_serially:
            readies = [env._usable().ready for env in self._envs]
            child_process.wait(readies, self._start_timeout, "start_timeout")
        self._action_spec = self._envs[0].action_spec()
        self._time_step_spec = self._envs[0].time_step_spec()
        batches.check_equal_specs("env_constructors", self._envs)
        self._check_action = action_arrays.ActionChecker(
            type(self).__name__, self._action_spec
        )
        specs = (self._action_spec, self._time_step_spec)
        if process_worker.can_share(specs):
            self._shared = self._share(specs)

    def current_time_step(self) -> ts.TimeStep:
        """Returns the members' current time steps.

        Raises:
          ValueError: If this environment was never reset.
        """
        if self._current_time_step == ():
            raise ValueError(
                "ParallelPyEnvironment.current_time_step: the environment was not "
                "reset yet, expected a reset before; call reset() first."
            )
        return self._stack(self._call("current_time_step"))

    def render(self, mode: str = "rgb_array") -> np.ndarray:
        """Returns the members' pictures, uint8 `[B, height, width, 3]`.

        Raises:
          NotImplementedError: If a member cannot be rendered, or `mode` is not
            "rgb_array".
        """
        process_py_environment.check_render_mode(mode)
        return np.stack(self._call("render", [(mode,)] * self.batch_size))

    def close(self) -> None:
        """Closes the members and ends their processes, whatever state they are in.

        Raises:
          ChildRaisedError: If closing a member raised; all processes have ended.
        """
        self._closed = True
        for env in self._envs:
            env._failure = env._failure or self._failure
        process_py_environment.close_all(self._envs)

    def _reset(self) -> ts.TimeStep:
        self._prepare()
        return self._play(process_worker.RESET, "reset", [b""] * self.batch_size)

    def _step(self, action: Any) -> ts.TimeStep:
        self._prepare()
        if self._shared is not None and self._shared.write_actions(action):
            return self._play(process_worker.STEP, "step", [b""] * self.batch_size)
        actions = batches.unstack_actions(action, self.batch_size)
        for member in actions:
            self._check_action(member)  # One refusal breaks the batch.
        messages = [
            cloudpickle.dumps((operator.methodcaller("step", member), ()))
            for member in actions
        ]
        return self._play(process_worker.APPLY, "step", messages)

    def _prepare(self) -> None:
        """Makes sure that the members work and are idle."""
        self._check_usable()
        if self._replies:
            # The last step was interrupted from the keyboard; let them finish it.
            self._wait()

    def _play(self, kind: int, what: str, messages: list[bytes]) -> ts.TimeStep:
        """Sends each member its message, and stacks the time steps of their answers."""
        try:
            for env, message in zip(self._envs, messages, strict=True):
                self._replies.append(env._send(kind, what, message))
                if self._blocking:
                    child_process.wait(
                        self._replies, self._step_timeout, "step_timeout"
                    )
        except child_errors.ChildError as error:
            self._failure = error
            raise
        replies = self._wait()
        if self._shared and all(r.kind == process_worker.SHARED for r in replies):
            return self._shared.read_time_steps()
        return self._stack([self._read(i, reply) for i, reply in enumerate(replies)])

    def _wait(self) -> list[child_process.Reply]:
        try:
            child_process.wait(self._replies, self._step_timeout, "step_timeout")
        except child_errors.ChildError as error:
            self._failure = error
            raise
        replies, self._replies = self._replies, []
        return replies

    def _read(self, member: int, reply: child_process.Reply) -> ts.TimeStep:
        if self._shared and reply.kind == process_worker.SHARED:
            return self._shared.read_time_step(member)
        return pickle.loads(reply.payload)

    def _stack(self, time_steps: list[ts.TimeStep]) -> ts.TimeStep:
        return batches.stack_time_steps(
            time_steps, self._time_step_spec, lambda i: self._envs[i]._name
        )

    def _apply(
        self,
        what: str,
        function: Callable[..., Any],
        arguments: Sequence[tuple[Any, ...]],
    ) -> list[Any]:
        """Calls `function(member, *args)` in every process, with its own args."""
        self._check_usable()
        return _gather(
            [
                env._apply(what, function, *args)
                for env, args in zip(self._envs, arguments, strict=True)
            ]
        )

    def _check_usable(self) -> None:
        process_py_environment.check_usable(
            "ParallelPyEnvironment", self._closed, self._failure
        )

    def _share(self, specs: tuple[Any, Any]) -> process_worker.SharedBatch:
        """Maps one block of memory into all members' processes."""
        fd = process_worker.make_file(specs, self.batch_size)
        try:
            promises = []
            for index, env in enumerate(self._envs):
                promises.append(
                    env._ask(
                        process_worker.ATTACH, "starting", (index, self.batch_size)
                    )
                )
                env._usable().send_file(fd)
            _gather(promises)
            return process_worker.SharedBatch(fd, *specs, self.batch_size)
        finally:
            os.close(fd)


def _gather(promises: list[Promise]) -> list[Any]:
    return [promise() for promise in promises]
