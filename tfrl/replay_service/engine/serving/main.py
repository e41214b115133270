"""Runs the server process.

`run` serves until an event is set. `child_main` is the main function of the process
that `tfrl.replay_service.Server` starts. It reads its configuration from stdin and
prints its port to stdout. It ends when stdin is closed, or its parent has ended.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import json
import os
import shutil
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

from tfrl.replay_service import checkpointers, errors
from tfrl.replay_service.engine.checkpoints import checkpoint_files, server_checkpoint
from tfrl.replay_service.engine.serving import network_listener, protocols
from tfrl.replay_service.engine.serving.service import Service
from tfrl.replay_service.engine.storage import step_store
from tfrl.system import locked_directories, log

STOP = b"stop"  # The bytes that a parent writes to stdin before it closes stdin.
_GRACE = 1.5  # Seconds for an orderly end.
_POLL = 1.0  # Seconds between checks whether the parent is alive.
_SOCKETS = "tfrl-replay-"  # The beginning of the name of the sockets' directory.

# The directory of the sockets, which is deleted before a forced exit.
_directory: str | None = None


async def run(
    config: Mapping[str, Any],
    announce: Callable[[int, str | None], None],
    stop: asyncio.Event,
) -> None:
    """Serves until `stop` is set.

    Args:
      config: "tables", a list of options, and optionally "host", "port", "token", "tls"
        (certificate chain and private key, PEM), "seed" and "checkpointer".
      announce: Called with the port when clients can connect. Its second argument is
        the directory of the Unix sockets, or None if there are no sockets.
      stop: The event that ends serving.

    Raises:
      OSError: If the port is not available, or no checkpoint could be written.
      ValueError: If an option, or the checkpoint to start from, is invalid.
    """
    locked_directories.remove_temporary(checkpointers.TEMPORARY)
    service = Service(
        config["tables"],
        seed=config.get("seed"),
        token=config.get("token"),
        shared=_can_share(),
        checkpointer=checkpointers.from_config(config.get("checkpointer")),
    )
    checkpoint_files.prepare_directory(service.checkpointer.path)
    service.last_checkpoint = server_checkpoint.restore_latest(service)
    checkpoint_files.remove_unfinished(service.checkpointer.path)
    async with contextlib.AsyncExitStack() as stack:
        directory = await _listen_locally(service, stack)
        host = str(config.get("host") or "localhost")
        listener = network_listener.listen(
            service, host, int(config.get("port") or 0), config.get("tls")
        )
        stack.push_async_callback(listener.close, _GRACE / 2)
        stack.callback(service.stop)
        service.start()
        # All objects so far are permanent, so the garbage collector can skip them.
        gc.collect()
        gc.freeze()
        announce(listener.port, directory)
        await stop.wait()


def serve(
    config: Mapping[str, Any],
    announce: Callable[[int, str | None], None],
    signals: bool = False,
    on_start: Callable[[Callable[[], None]], None] | None = None,
) -> None:
    """Serves in this thread until a signal or the function for `on_start` ends it.

    Args:
      config: As for `run`.
      announce: As for `run`.
      signals: Whether SIGINT, SIGTERM and SIGHUP end serving. A SIGHUP that is ignored,
        as by nohup, stays ignored.
      on_start: Called with a function that ends serving. Any thread may call the
        function.

    Raises:
      Exception: The same as `run`.
    """

    async def _serve() -> None:
        loop = asyncio.get_running_loop()
        stop = asyncio.Event()

        def end(*_: Any) -> None:
            with contextlib.suppress(RuntimeError):  # The loop may have ended already.
                loop.call_soon_threadsafe(stop.set)

        if signals:
            for name in ("SIGINT", "SIGTERM", "SIGHUP"):
                number = getattr(signal, name, None)  # Windows has no SIGHUP.
                if number and signal.getsignal(number) != signal.SIG_IGN:
                    signal.signal(number, end)
        if on_start is not None:
            on_start(end)
        await run(config, announce, stop)

    # Windows has another default, which was never tried here.
    with asyncio.Runner(loop_factory=asyncio.SelectorEventLoop) as runner:
        runner.run(_serve())


def child_main(parent: int) -> None:
    """Serves as a child process, with the configuration from stdin.

    Args:
      parent: The process id of the parent.
    """
    # The parent handles interrupts.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    config = json.loads(sys.stdin.buffer.readline())
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # Other output must not reach the parent's pipe.

    def tell_parent(**message: Any) -> None:
        with contextlib.suppress(OSError):
            out.write(f"{json.dumps(message)}\n")
            out.flush()

    def announce(port: int, directory: str | None) -> None:
        tell_parent(port=port, directory=directory)
        out.close()

    tell_parent(restoring=True)  # Restoring a checkpoint may take long.

    def tidy(is_orphan: bool) -> None:
        # Delete the directory that a killed parent could not delete.
        if config.get("temporary") and is_orphan:
            shutil.rmtree(config["temporary"], ignore_errors=True)

    def watch(stop: Callable[[], None]) -> None:
        _end_with(parent, orphaned, stop, tidy)

    orphaned = threading.Event()
    try:
        serve(config, announce, on_start=watch)
        tidy(orphaned.is_set())
    except (OSError, ValueError, errors.ReverbError) as error:
        code = "os" if isinstance(error, OSError) else errors.code_of(error)
        number = getattr(error, "errno", None)
        # The parent's exception adds the number again.
        text = str(error).removeprefix(f"[Errno {number}] ")
        tell_parent(code=code, message=text, errno=number)
        sys.exit(1)


def _end_with(
    parent: int,
    orphaned: threading.Event,
    stop: Callable[[], None],
    tidy: Callable[[bool], None],
) -> None:
    """Ends this process when stdin is closed, or when `parent` is no longer its parent.

    Args:
      parent: The process id of the parent.
      orphaned: Set if the parent has ended without a message to stop.
      stop: Ends serving.
      tidy: Called before a forced exit; its argument is whether the parent has ended.
    """

    def end() -> None:
        stop()
        time.sleep(_GRACE)
        # The loop did not end in time.
        if _directory is not None:
            shutil.rmtree(_directory, ignore_errors=True)
        tidy(orphaned.is_set())
        os._exit(1)

    def read() -> None:
        message = b""
        with contextlib.suppress(OSError):
            while data := os.read(0, 4096):
                message = data
        if not message.startswith(STOP):
            orphaned.set()
        end()

    def poll() -> None:
        # Stdin may stay open, because processes forked from the parent inherit it.
        while os.getppid() == parent:
            time.sleep(_POLL)
        orphaned.set()
        end()

    threads = [read] if sys.platform == "win32" else [read, poll]
    for target in threads:
        threading.Thread(target=target, name="parent-watch", daemon=True).start()


def _can_share() -> bool:
    """Returns whether other processes of this host can map memory of this process."""
    probe = step_store.make_arena([1], shared=True)
    shared = probe.fd is not None
    probe.close()
    return shared and hasattr(socket, "AF_UNIX") and hasattr(socket, "send_fds")


async def _listen_locally(
    service: Service, stack: contextlib.AsyncExitStack
) -> str | None:
    """Listens on Unix sockets in a private directory, if the system has them."""
    if sys.platform == "win32" or not hasattr(socket, "AF_UNIX"):
        return None
    return await _listen_on_unix_sockets(service, stack)


async def _listen_on_unix_sockets(
    service: Service, stack: contextlib.AsyncExitStack
) -> str | None:
    global _directory
    from tfrl.replay_service.engine.serving import arena_listener

    loop = asyncio.get_running_loop()
    try:
        locked_directories.remove_temporary(_SOCKETS)
        _directory, lock = locked_directories.make_temporary(_SOCKETS)
        if lock is not None:
            stack.callback(lock.release)
        stack.callback(shutil.rmtree, _directory, ignore_errors=True)
        path = os.path.join(_directory, "s")
        server = await loop.create_unix_server(
            lambda: protocols.LocalProtocol(service), path
        )
    except OSError as error:
        log.info(f"tfrl.replay_service: no local socket: {error}")
        return _directory
    stack.callback(server.close)
    service.local = {"socket": path, "arena_socket": None, "secret": service.secret}
    if service.shared:
        path = os.path.join(_directory, "a")
        listener = arena_listener.ArenaListener(
            path, service.secret, service.find_store
        )
        stack.callback(listener.close)
        service.local["arena_socket"] = path
    return _directory
