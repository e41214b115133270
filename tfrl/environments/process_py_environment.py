"""`ProcessPyEnvironment` runs a Python environment in another process."""

from __future__ import annotations

import contextlib
import operator
import pickle
import weakref
from collections.abc import Callable
from functools import partial
from typing import Any

import tree

from tfrl.environments import process_worker, py_environment
from tfrl.system import child_errors, child_process
from tfrl.trajectories import time_step as ts

EnvConstructor = Callable[[], py_environment.PyEnvironment]
Promise = Callable[[], Any]

_GRACE = 5.0  # Seconds that workers have to close their environments and end.
_SHORT_GRACE = 1.0  # The same, after a failure or during an unwanted step.

# Errors that describe the called method, not the worker, are raised with their own
# type.
_HARMLESS = (NotImplementedError, AttributeError)


class ProcessPyEnvironment:
    """Steps a single environment in another process.

    The process is a fresh interpreter. It imports neither the user's script nor
    TensorFlow. Public attributes and methods that are not defined here are looked up in
    the environment, which takes one or two messages.
    """

    def __init__(
        self,
        env_constructor: EnvConstructor,
        flatten: bool = False,
        *,
        start_timeout: float | None = 300.0,
        step_timeout: float | None = 600.0,
        name: str = "env_constructor",
    ):
        """Pickles the constructor; `start` starts the process.

        Args:
          env_constructor: Makes the environment in the process. The function is sent by
            cloudpickle, so it may be a lambda or a class of a notebook.
          flatten: Whether `step` takes its action, and `step` and `reset` return their
            time steps, as flat lists of arrays.
          start_timeout: The number of seconds within which the environment must start;
            None for no limit.
          step_timeout: The number of seconds within which the environment must answer
            each call; None for no limit.
          name: The name of the process in error messages.

        Raises:
          TypeError: If `env_constructor` is not a function, or does not pickle.
        """
        self._pickled_constructor = _pickle_constructor(env_constructor, name)
        self._flatten = flatten
        self._start_timeout = start_timeout
        self._step_timeout = step_timeout
        self._name = name
        self._child: child_process.ChildProcess | None = None
        self._specs: tuple[Any, ts.TimeStep] | None = None
        self._failure: BaseException | None = None
        self._closed = False

    def start(self, wait_to_start: bool = True) -> None:
        """Starts the process.

        Args:
          wait_to_start: Whether to wait until the process has made the environment.

        Raises:
          ChildError: If the process cannot make the environment; see `wait_start`.
          RuntimeError: If the process was started already.
        """
        if self._child is not None:
            raise RuntimeError(
                f"{self._name}: got start() again, expected it once for each "
                "environment; make another one."
            )
        serve = partial(process_worker.serve, self._pickled_constructor)
        self._child = child_process.ChildProcess(serve, self._name)
        # This also runs at the end of the program, and when the environment is garbage.
        self._finalizer = weakref.finalize(self, stop, [self._child])
        if wait_to_start:
            self.wait_start()

    def wait_start(self) -> None:
        """Waits until the environment is made.

        Raises:
          ChildRaisedError: If the constructor raises, or does not make a single
            `PyEnvironment`.
          ChildDiedError: If the process dies.
          ChildTimeoutError: If the start takes longer than `start_timeout`.
        """
        ready = self._usable().ready
        self._wait(ready, self._start_timeout, "start_timeout")
        if self._specs is None:
            self._specs = pickle.loads(ready.payload)

    def observation_spec(self) -> Any:
        """The specs of the observations."""
        return self.time_step_spec().observation

    def action_spec(self) -> Any:
        """The specs of the actions."""
        return self._known_specs()[0]

    def time_step_spec(self) -> ts.TimeStep:
        """The specs of the time steps."""
        return self._known_specs()[1]

    def call(self, name: str, *args: Any, **kwargs: Any) -> Promise:
        """Calls a method of the environment without waiting for it.

        Args:
          name: The name of the method.
          *args: Its arguments; they are sent by cloudpickle.
          **kwargs: Its keyword arguments; they are sent by cloudpickle.

        Returns:
          A function that waits for the result and returns it. If the method raises an
          exception, this function raises a `ChildRaisedError` with the traceback;
          NotImplementedError and AttributeError keep their types.

        Raises:
          ChildError: If the process is dead, or has failed before.
        """
        return self._apply(name, operator.methodcaller(name, *args, **kwargs))

    def access(self, name: str) -> Any:
        """Returns an attribute of the environment; raises the same errors as `call`."""
        return self._apply(name, operator.attrgetter(name))()

    def step(self, action: Any, blocking: bool = True) -> Any:
        """Steps the environment.

        Args:
          action: A nest like `action_spec()`; a flat list with `flatten`.
          blocking: Whether to wait for the result.

        Returns:
          The time step if `blocking`, else a function that waits for it.
        """
        if self._flatten:
            action = tree.unflatten_as(self.action_spec(), action)
        return self._play("step", blocking, action)

    def reset(self, blocking: bool = True) -> Any:
        """Resets the environment; for the argument and the result see `step`."""
        return self._play("reset", blocking)

    def render(self, mode: str = "rgb_array", blocking: bool = True) -> Any:
        """Renders the environment.

        Args:
          mode: Only "rgb_array" is supported.
          blocking: Whether to wait for the picture.

        Returns:
          The picture, uint8 `[height, width, 3]`, if `blocking`, else a function that
          waits for it.

        Raises:
          NotImplementedError: If the environment cannot be rendered, or `mode` is not
            "rgb_array".
        """
        check_render_mode(mode)
        promise = self.call("render", mode)
        return promise() if blocking else promise

    def close(self) -> None:
        """Closes the environment and ends its process, whatever state it is in.

        Raises:
          ChildRaisedError: If closing the environment raised; the process has ended.
        """
        close_all([self])

    def __getattr__(self, name: str) -> Any:
        # Private names never belong to the environment; pickling asks for some.
        if name.startswith("_"):
            raise AttributeError(f"{type(self).__name__!r} has no attribute {name!r}")
        is_method, value = self._apply(name, process_worker.look_up, name)()
        if is_method:
            return lambda *args, **kwargs: self.call(name, *args, **kwargs)()
        return value

    def _apply(self, what: str, function: Callable[..., Any], *args: Any) -> Promise:
        """Calls `function(environment, *args)` in the process of the environment."""
        return self._ask(process_worker.APPLY, what, (function, args))

    def _play(self, method: str, blocking: bool, *args: Any) -> Any:
        message = operator.methodcaller(method, *args), ()
        call = self._ask(process_worker.APPLY, method, message, fatal=True)

        def promise() -> Any:
            time_step = call()
            return tree.flatten(time_step) if self._flatten else time_step

        return promise() if blocking else promise

    def _ask(self, kind: int, what: str, message: Any, fatal: bool = False) -> Promise:
        """Sends a request with a pickled answer.

        If `fatal` is True, an exception in the process makes this environment unusable.
        """
        reply = self._send(kind, what, child_process.dumps(message))

        def promise() -> Any:
            try:
                self._wait(reply, self._step_timeout, "step_timeout")
            except child_errors.ChildRaisedError as error:
                if fatal:
                    self._failure = error
                elif isinstance(error.original, _HARMLESS):
                    raise type(error.original)(
                        f"{self._name}: {error.original}"
                    ) from error
                raise
            return pickle.loads(reply.payload)

        return promise

    def _send(self, kind: int, what: str, payload: bytes = b"") -> child_process.Reply:
        try:
            return self._usable().request(kind, payload, what)
        except child_errors.ChildError as error:
            self._failure = error
            raise

    def _wait(
        self, reply: child_process.Reply, timeout: float | None, argument: str
    ) -> None:
        try:
            child_process.wait([reply], timeout, argument)
        except (child_errors.ChildDiedError, child_errors.ChildTimeoutError) as error:
            self._failure = error
            raise

    def _known_specs(self) -> tuple[Any, ts.TimeStep]:
        if self._specs is None:
            self.wait_start()
        assert self._specs is not None
        return self._specs

    def _usable(self) -> child_process.ChildProcess:
        check_usable(self._name, self._closed, self._failure)
        if self._child is None:
            raise RuntimeError(
                f"{self._name}: got a call before start(), expected the process to "
                "run; call start() first."
            )
        return self._child


def check_usable(name: str, closed: bool, failure: BaseException | None) -> None:
    """Raises RuntimeError if an environment is closed, or has failed before."""
    if closed:
        raise RuntimeError(
            f"{name}: the environment is closed, expected an open one; make another."
        )
    if failure is not None:
        reason = str(failure).partition("\n")[0]
        raise RuntimeError(
            f"{name}: the environment is broken since an earlier call failed "
            f"({reason}); close it and make another."
        ) from failure


def check_render_mode(mode: str) -> None:
    """Raises NotImplementedError for a mode that does not work across processes."""
    if mode != "rgb_array":
        raise NotImplementedError(
            f"mode: got {mode!r}, expected 'rgb_array', the only one for environments "
            "in separate processes; show the picture that it returns."
        )


def close_all(environments: list[ProcessPyEnvironment]) -> None:
    """Closes all environments together; if one has failed, it waits only briefly.

    Raises:
      ChildRaisedError: If closing one raised, and none had failed before.
    """
    running = [env for env in environments if env._child and not env._closed]
    failed = any(env._failure is not None for env in environments)
    for env in environments:
        env._closed = True
    for env in running:
        env._finalizer.detach()
    children = [env._child for env in running if env._child]
    try:
        _stop(children, failed)
    except child_errors.ChildRaisedError:
        if not failed:
            raise


def stop(children: list[child_process.ChildProcess]) -> None:
    """Ends processes that the user did not close; ignores errors of closing."""
    with contextlib.suppress(child_errors.ChildRaisedError):
        _stop(children, failed=False)


def _stop(children: list[child_process.ChildProcess], failed: bool) -> None:
    hasty = failed or any(child.is_busy() for child in children)
    grace = _SHORT_GRACE if hasty else _GRACE
    child_process.stop_all(children, process_worker.CLOSE, grace)


def _pickle_constructor(constructor: Any, name: str) -> bytes:
    if isinstance(constructor, py_environment.PyEnvironment) or not callable(
        constructor
    ):
        raise TypeError(
            f"{name}: got {constructor!r} of type {type(constructor).__name__}, "
            "expected a function that makes an environment, because the environment "
            "has to be made in its own process; give the class, or a lambda."
        )
    try:
        return child_process.dumps(constructor)
    except Exception as error:
        raise TypeError(
            f"{name}: got {constructor!r}, which does not pickle "
            f"({type(error).__name__}: {error}), expected something that can be sent "
            "to another process; make files, locks and environments inside the "
            "function, and read flags into a variable before."
        ) from error
