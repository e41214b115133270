"""Starts fresh Python interpreters: workers, the replay server, converters.

A child gets its parent's `sys.path` and interpreter options before its first import.
The child runs in its own session, so that Ctrl-C does not reach it.

>>> import subprocess
>>> from tfrl.system import interpreter
>>> child = interpreter.start(
...     "print(sys.argv[1:])", ["a", 1], stdin=None, stdout=subprocess.PIPE
... )
>>> child.communicate()[0].split()
[b"['a',", b"'1']"]
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Collection, Sequence
from typing import Any

# A module's name given by -m would be looked up in the working directory first.
_PREPARE = (
    "import sys; end = 2 + int(sys.argv[1]); sys.path[:] = sys.argv[end:]; "
    "sys.argv[1:] = sys.argv[2:end]; "
)


def start(
    code: str,
    arguments: Sequence[Any],
    *,
    stdin: int | None,
    stdout: int | None = None,
    stderr: int | None = None,
    pass_fds: Collection[int] = (),
) -> subprocess.Popen[bytes]:
    """Starts an interpreter that runs `code`, and does not wait for it.

    Args:
      code: Python statements on one line; `sys` is already imported.
      arguments: The strings in the code's `sys.argv[1:]`.
      stdin: As for `subprocess.Popen`.
      stdout: As for `subprocess.Popen`.
      stderr: As for `subprocess.Popen`.
      pass_fds: File descriptors that the child inherits; none on Windows.

    Raises:
      OSError: If the process cannot be started.
    """
    own_session: dict[str, Any]
    if sys.platform == "win32":
        own_session = {"creationflags": subprocess.CREATE_NEW_PROCESS_GROUP}
    else:
        own_session = {"start_new_session": True}
    given = [str(len(arguments)), *map(str, arguments), *map(str, sys.path)]
    return subprocess.Popen(
        [sys.executable, *_options(), "-c", _PREPARE + code, *given],
        stdin=stdin,
        stdout=stdout,
        stderr=stderr,
        pass_fds=pass_fds,
        **own_session,
    )


def run(code: str, arguments: Sequence[Any]) -> subprocess.CompletedProcess[str]:
    """Runs `code` in an interpreter, and returns its status and what it wrote.

    Args:
      code: See `start`.
      arguments: See `start`.

    Raises:
      OSError: If the process cannot be started.
    """
    pipe = subprocess.PIPE
    with start(
        code, arguments, stdin=subprocess.DEVNULL, stdout=pipe, stderr=pipe
    ) as process:
        try:
            said = [x.decode(errors="replace") for x in process.communicate()]
        finally:
            process.kill()  # After Ctrl-C, which does not reach it.
    return subprocess.CompletedProcess(process.args, process.returncode, *said)


def _options() -> list[str]:
    """Returns the options with which this interpreter was started, such as -O."""
    # This function is private to the standard library. Without it, children have the
    # default options.
    find = getattr(subprocess, "_args_from_interpreter_flags", None)
    return [] if find is None else find()
