"""The errors of child processes, with messages that name the remedy."""

from __future__ import annotations

import pickle
import signal
import sys
import traceback

import cloudpickle


class ChildError(RuntimeError):
    """A child process failed to answer a request."""


class ChildDiedError(ChildError):
    """A child process ended before it answered."""


class ChildTimeoutError(ChildError, TimeoutError):
    """A child process did not answer in time."""


class ChildRaisedError(ChildError):
    """The function in a child process raised an exception.

    The message contains the child's traceback.

    Attributes:
      original: The exception itself; None if it cannot be pickled.
    """

    original: BaseException | None = None


# The text after the remedy of an error, for a child made by the user's code.
NEW_CHILD = "then close this and create a new one"


def died(
    name: str, what: str, pid: int, code: int | None, then: str = NEW_CHILD
) -> ChildDiedError:
    """Returns the error for a child that ended.

    Args:
      name: The name of the child.
      what: The request during which it ended.
      pid: The process id.
      code: The return code, as in `Popen.returncode`; None if it is unknown.
      then: A sentence about the steps after the remedy.
    """
    return ChildDiedError(
        f"{name}: its process {pid} {describe_exit(code)} during {what}, expected it "
        f"to answer; {_advice(code)}, {then}."
    )


def timed_out(
    name: str, what: str, timeout: float, argument: str, stack: str
) -> ChildTimeoutError:
    """Returns the error for a child that does not answer.

    Args:
      name: The name of the child.
      what: The request without an answer.
      timeout: The number of seconds that the parent has waited.
      argument: The name of the argument that sets `timeout`.
      stack: The stack of the child, or "".
    """
    where = f" Its stack:\n\n{stack}" if stack else ""
    return ChildTimeoutError(
        f"{name}: got no answer to {what} within {timeout:g} s, expected one; fix what "
        f"hangs, or raise {argument} if it is only slow, then create a new one.{where}"
    )


def raised(
    name: str, what: str, payload: bytes, then: str = NEW_CHILD
) -> ChildRaisedError:
    """Returns the error for an exception in a child.

    Args:
      name: The name of the child.
      what: The request that raised the exception.
      payload: What `payload_of` returned in the child.
      then: A sentence about the steps after the remedy.
    """
    text, pickled = pickle.loads(payload)
    error = ChildRaisedError(
        f"{name}: {what} raised the exception below, expected none; fix its cause, "
        f"{then}.\n\n{text}"
    )
    if pickled is not None:
        error.original = pickle.loads(pickled)
    return error


def payload_of(error: BaseException) -> bytes:
    """Returns a child's message with the traceback, and the error if it pickles."""
    text = "".join(traceback.format_exception(error))
    try:
        pickled = cloudpickle.dumps(error)
        pickle.loads(pickled)  # Many exceptions can be pickled, but not unpickled.
    except Exception:
        pickled = None
    return pickle.dumps((text, pickled))


def describe_exit(code: int | None) -> str:
    """Returns a phrase about the end of a process, such as "was killed by SIGKILL"."""
    if code is None:
        return "closed its connection"
    if code >= 0:
        return f"exited with code {code}"
    try:
        return f"was killed by {signal.Signals(-code).name}"
    except ValueError:
        return f"was killed by signal {-code}"


def was_killed(code: int | None) -> bool:
    """Whether a process was killed by SIGKILL, as happens without free memory.

    Args:
      code: The return code, as in `Popen.returncode`; None if it is unknown.
    """
    # On Windows whoever kills a process chooses its exit code.
    return sys.platform != "win32" and code == -signal.SIGKILL


def _advice(code: int | None) -> str:
    if was_killed(code):
        return "check whether the machine ran out of memory"
    if code is not None and code < 0:
        return "look for a crash in native code, which is reported on stderr"
    return "look for a call that ends the process, such as sys.exit or os._exit"
