"""The main function of child processes, which runs a function for the parent.

Only the children that `child_process` starts import this module.
"""

from __future__ import annotations

import contextlib
import faulthandler
import os
import pickle
import signal
import socket
import sys
import threading

from tfrl.system import channel as channels
from tfrl.system import child_errors, posix, state_savers

if sys.platform == "win32":
    raise ImportError("No child of `child_process` is started on Windows.")


def main(channel_fd: int, lifeline_fd: int, stack_fd: int, parent: int) -> None:
    """Receives a function and calls it with the channel to the parent.

    Args:
      channel_fd: The socket of the channel.
      lifeline_fd: The reading end of a pipe that is never written to. Only the parent
        holds the other end, so it closes when the parent ends.
      stack_fd: The file to which the stack is written on SIGUSR1.
      parent: The process id of the parent.
    """
    # The parent handles interrupts.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for fd in (channel_fd, lifeline_fd, stack_fd):
        os.set_inheritable(fd, False)
    end_with_parent(lifeline_fd, parent)
    faulthandler.register(signal.SIGUSR1, file=stack_fd, all_threads=False)
    channel = channels.Channel(socket.socket(fileno=channel_fd))
    try:
        _, payload = channel.receive()
        states, target = pickle.loads(payload)
        state_savers.restore_states(states)
        target(channel)
    except channels.ChannelClosedError:
        pass  # The parent has closed the channel.
    except BaseException as error:
        with contextlib.suppress(OSError):
            channel.send(channels.RAISED, child_errors.payload_of(error))
        sys.exit(1)


def end_with_parent(lifeline_fd: int, parent: int) -> None:
    """Ends this process and its children when the parent has ended.

    Args:
      lifeline_fd: See `main`.
      parent: See `main`.
    """
    import fcntl

    if hasattr(fcntl, "F_SETSIG"):
        # On Linux the kernel kills this process when the other end closes. This works
        # even while native code holds the GIL, which blocks the thread below.
        with contextlib.suppress(OSError):
            fcntl.fcntl(lifeline_fd, fcntl.F_SETOWN, -os.getpgid(0))
            fcntl.fcntl(lifeline_fd, fcntl.F_SETSIG, signal.SIGKILL)
            flags = fcntl.fcntl(lifeline_fd, fcntl.F_GETFL)
            fcntl.fcntl(lifeline_fd, fcntl.F_SETFL, flags | os.O_ASYNC)
    threading.Thread(
        target=_watch, args=(lifeline_fd, parent), name="parent-watch", daemon=True
    ).start()


def _watch(lifeline_fd: int, parent: int) -> None:
    posix.wait_for_end_of(parent, lifeline_fd)
    with contextlib.suppress(OSError):
        os.killpg(os.getpid(), signal.SIGKILL)
    os._exit(1)
