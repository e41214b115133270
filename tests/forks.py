"""Runs examples and scripts in forks of one process that has imported what they do.

Importing takes longer than most of what they do.
"""

import itertools
import json
import os
import pathlib
import signal
import subprocess
import sys
import time
from typing import NamedTuple

COMMANDS = ("train", "play", "record", "evaluate", "sweep", "report")
REPOSITORY = pathlib.Path(__file__).resolve().parents[1]
ENVIRONMENT = {**os.environ, "SDL_VIDEODRIVER": "dummy", "CUDA_VISIBLE_DEVICES": ""}

# What is imported here starts no thread, defines no flag and registers no environment.
EVERYTHING = """
import importlib, pkgutil
import gymnasium, imageio.v2, imageio_ffmpeg, keras, matplotlib.pyplot
import pygame, tensorboard, tensorflow
import tfrl
for module in pkgutil.walk_packages(tfrl.__path__, "tfrl."):
    if not module.name.startswith(("tfrl.environments.suite_", "tfrl.testing")):
        importlib.import_module(module.name)
"""
SERVER = """
import atexit, gc, json, os, runpy, sys, threading, traceback
# A garbage collection in a fork would look through all that was imported.
gc.freeze()

def run(code):
    try:
        if code.endswith(".py"):
            runpy.run_path(code, run_name="__main__")
        else:
            runpy.run_module(code, run_name="__main__", alter_sys=True)
    except SystemExit as end:
        if end.code is None or isinstance(end.code, int):
            return end.code or 0
        print(end.code, file=sys.stderr)
        return 1
    except BaseException as error:
        traceback.print_exc()
        return 130 if isinstance(error, KeyboardInterrupt) else 1
    return 0

for line in sys.stdin:
    request = json.loads(line)
    if "poll" in request:
        process, status = os.waitpid(request["poll"], os.WNOHANG)
        answer = os.waitstatus_to_exitcode(status) if process else None
    else:
        answer = os.fork()
        if not answer:
            for path, descriptor in ((request["output"], 1), (request["errors"], 2)):
                os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT), descriptor)
            code = request["code"]
            sys.argv = [code, *request["arguments"]]
            status = run(code)
            # As the interpreter ends, but without freeing all that was imported, which
            # takes longer than a short example.
            threading._shutdown()
            atexit._run_exitfuncs()
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(status)
    print(json.dumps(answer), flush=True)
"""


class Ended(NamedTuple):
    """What is left of a fork that has ended."""

    code: int
    output: str
    errors: str


class Fork:
    """A running example or script."""

    def __init__(self, ask, code, arguments, folder):
        self._ask = ask
        self._output, self._errors = folder.with_suffix(".out"), folder
        self.pid = ask(
            code=code,
            arguments=arguments,
            output=str(self._output),
            errors=str(self._errors),
        )

    @property
    def output(self):
        """What it has printed by now."""
        return self._output.read_text() if self._output.exists() else ""

    @property
    def errors(self):
        """What it has written to standard error by now."""
        return self._errors.read_text() if self._errors.exists() else ""

    def wait_for(self, is_reached):
        """Waits until `is_reached()`, which the fork has to bring about."""
        deadline = time.monotonic() + 200
        while not is_reached():
            code = self._ask(poll=self.pid)
            assert code is None, self._ended(code)
            assert time.monotonic() < deadline
            time.sleep(0.01)

    def end(self, number=0):
        """Sends a signal, unless it is 0, and waits for the end."""
        os.kill(self.pid, number)
        deadline = time.monotonic() + 280
        try:
            while (code := self._ask(poll=self.pid)) is None:
                assert time.monotonic() < deadline, self._ended(None)
                time.sleep(0.01)
        except BaseException:
            # A fork that goes on would make the next tests late, too.
            os.kill(self.pid, signal.SIGKILL)
            raise
        return self._ended(code)

    def _ended(self, code):
        return Ended(code, self.output, self.errors)


class Forks:
    """The process whose forks run the examples and scripts.

    Args:
      folder: Where their outputs are written.
      imports: The code that the process runs first.
      variables: Further variables of its environment.
    """

    def __init__(self, folder, imports=EVERYTHING, **variables):
        self._paths = (folder / str(number) for number in itertools.count())
        self._server = subprocess.Popen(
            [sys.executable, "-c", imports + SERVER],
            cwd=REPOSITORY,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=ENVIRONMENT | variables,
        )

    def start(self, code, *arguments):
        """Starts a script, `tfrl`, an example, or a command such as "train ppo"."""
        first, *rest = code.split() if not code.endswith(".py") else [code]
        if first in COMMANDS:
            code, arguments = "tfrl", [first, *rest, *arguments]
        elif first != "tfrl" and not code.endswith(".py"):
            code = f"examples.{code}"
        return Fork(self._ask, code, arguments, next(self._paths))

    def run(self, code, *arguments):
        return self.start(code, *arguments).end()

    def close(self):
        self._server.kill()
        self._server.communicate()

    def _ask(self, **request):
        self._server.stdin.write(json.dumps(request) + "\n")
        self._server.stdin.flush()
        return json.loads(self._server.stdout.readline())
