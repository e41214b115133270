"""What can go wrong with a child process, in words that say how to mend it."""

from __future__ import annotations

import pickle
import signal


class ChildError(RuntimeError):
    """A child process did not do what it was asked."""


class ChildDiedError(ChildError):
    """A child process ended before it answered."""


class ChildTimeoutError(ChildError, TimeoutError):
    """A child process did not answer in time."""


class ChildRaisedError(ChildError):
    """What a child process ran raised an exception.

    The message has the traceback of the child. The exception itself, where it pickles,
    is `original`.
    """

    original: BaseException | None = None


def died(name: str, what: str, pid: int, code: int | None) -> ChildDiedError:
    """Returns the error for a child that ended with `code` as `Popen.returncode`."""
    return ChildDiedError(
        f"{name}: its process {pid} {describe_exit(code)} during {what}, expected it "
        f"to answer; {_advice(code)}, then close this and make it anew."
    )


def timed_out(
    name: str, what: str, timeout: float, argument: str, stack: str
) -> ChildTimeoutError:
    """Returns the error for a child that is silent; `stack` is where it was."""
    where = f" It was here:\n\n{stack}" if stack else ""
    return ChildTimeoutError(
        f"{name}: got no answer to {what} within {timeout:g} s, expected one; mend "
        f"what hangs, or raise {argument} if it is only slow, then make it anew.{where}"
    )


def raised(name: str, what: str, payload: bytes) -> ChildRaisedError:
    """Returns the error for the message by which a child tells of an exception."""
    text, pickled = pickle.loads(payload)
    error = ChildRaisedError(
        f"{name}: {what} raised the exception below, expected none; mend its cause, "
        f"then close this and make it anew.\n\n{text}"
    )
    if pickled is not None:
        error.original = pickle.loads(pickled)
    return error


def describe_exit(code: int | None) -> str:
    """Returns how a process ended: by which signal, or with which exit code."""
    if code is None:
        return "closed its connection"
    if code >= 0:
        return f"exited with code {code}"
    try:
        return f"was killed by {signal.Signals(-code).name}"
    except ValueError:
        return f"was killed by signal {-code}"


def _advice(code: int | None) -> str:
    if code == -signal.SIGKILL:
        return "look whether the machine ran out of memory"
    if code is not None and code < 0:
        return "look for a crash in native code, which tells of itself on stderr"
    return "look for what ends its own process, such as sys.exit or os._exit"
