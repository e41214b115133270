"""The names that Python lacks on Windows are taken away, and the replay service runs.

`mypy --platform win32`, a part of the lint command, finds the names in the whole
package. Here a process of Linux or macOS imports each module and runs the branches for
Windows: the modules of tfrl see `os`, `signal`, `socket`, `select`, `mmap` and
`faulthandler` as they are on Windows, `sys.platform` is "win32", and `msvcrt.locking`
is played by `flock`. What Windows itself does is not tested.
"""

import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="plays Windows")

PRELUDE = """
import asyncio, atexit, concurrent.futures, contextlib, fcntl, fnmatch, hmac, io
import importlib, json, logging, multiprocessing.connection, os, pathlib, pkgutil
import random, shutil, ssl, subprocess, sys, tempfile, threading, types, weakref
import cloudpickle, lazy_loader, numpy as np, tree
import ml_dtypes

LACKING = {
    "os": '''O_CLOEXEC O_DIRECTORY O_NOFOLLOW O_NONBLOCK O_ASYNC WNOHANG RTLD_NOW chown
        fchmod fchown fork forkpty getegid geteuid getgid getloadavg getpgid getpgrp
        getpriority getsid getuid kill killpg lchown lockf memfd_create mkfifo nice
        pidfd_open pipe2 posix_fadvise posix_fallocate posix_spawn pread preadv pwrite
        pwritev register_at_fork sched_getaffinity sched_setaffinity sendfile setpgid
        setsid set_blocking statvfs sync sysconf uname wait waitid''',
    "signal": '''SIGALRM SIGCHLD SIGHUP SIGKILL SIGPIPE SIGUSR1 SIGUSR2 alarm pause
        pidfd_send_signal pthread_kill pthread_sigmask setitimer sigwait''',
    "socket": "AF_UNIX CMSG_LEN SCM_RIGHTS recv_fds send_fds",
    "select": "epoll kqueue poll POLLIN POLLOUT EPOLLIN",
    "mmap": '''MADV_DONTNEED MADV_REMOVE MAP_ANONYMOUS MAP_NORESERVE MAP_PRIVATE
        MAP_SHARED PROT_READ PROT_WRITE''',
    "faulthandler": "register unregister",
}


class Lacking(types.ModuleType):
    def __init__(self, name, names):
        super().__init__(name)
        self.__dict__["_whole"] = importlib.import_module(name)
        self.__dict__["_names"] = frozenset(names.split())

    def __getattr__(self, name):
        if name in self._names:
            raise AttributeError(f"{self.__name__}.{name} does not exist on Windows")
        return getattr(self._whole, name)


def locking(descriptor, mode, size):
    assert os.lseek(descriptor, 0, os.SEEK_CUR) > 1 << 20 and size == 1
    fcntl.flock(descriptor, {0: fcntl.LOCK_UN, 2: fcntl.LOCK_EX | fcntl.LOCK_NB}[mode])


msvcrt = types.ModuleType("msvcrt")
msvcrt.locking, msvcrt.LK_UNLCK, msvcrt.LK_NBLCK = locking, 0, 2
real_os = os
sys.modules["msvcrt"] = msvcrt
for name in ("fcntl", "grp", "pwd", "resource", "termios"):
    sys.modules[name] = None
for name, names in LACKING.items():
    sys.modules[name] = Lacking(name, names)
sys.platform = "win32"
"""

SERVICE = """
from tfrl import replay_service as reverb
from tfrl.replay_service import rate_limiters, selectors
from tfrl.replay_service.engine.serving import main

limiter = rate_limiters.MinSize(1)
fifo = selectors.Fifo()
table = reverb.Table("t", fifo, fifo, 100, limiter, max_times_sampled=1)
checkpointer = reverb.checkpointers.DefaultCheckpointer(sys.argv[1])
config = {"tables": [table.to_config()], "checkpointer": checkpointer.to_config()}


def serve():
    place, stop, ready = [], [], threading.Event()

    def announce(port, directory):
        place.extend([port, directory])
        ready.set()

    thread = threading.Thread(
        target=main.serve, args=(config, announce), kwargs={"on_start": stop.append}
    )
    thread.start()
    assert ready.wait(60)
    assert place[1] is None  # There is no local socket.
    return place[0], stop[0], thread


port, stop, thread = serve()
client = reverb.Client(f"localhost:{port}")
large = np.arange(1 << 16, dtype=np.float32)
with client.trajectory_writer(num_keep_alive_refs=2) as writer:
    for step in range(5):
        writer.append({"x": np.int64(step), "y": large + step})
        if step:
            writer.create_item("t", 1.0, {"x": writer.history["x"][-2:]})
client.checkpoint()
stop()
thread.join(20)
port, stop, thread = serve()
client = reverb.Client(f"localhost:{port}")
items = [item.data[0].tolist() for item in client.sample("t", 4, emit_timesteps=False)]
stop()
thread.join(20)
print(sorted(items))
"""

LOCKS = """
from tfrl.system import directory_lock, file_lock

folder = pathlib.Path(sys.argv[1])
held = directory_lock.lock(folder)
path = folder / directory_lock.NAME
assert json.loads(path.read_bytes())["pid"] == real_os.getpid() and held.is_intact
try:
    file_lock.FileLock(real_os.open(path, real_os.O_RDWR))
except file_lock.HeldError:
    print("held")
held.release()
assert not path.exists()
directory_lock.lock(folder).release()
again = file_lock.FileLock(real_os.open(folder / "f", real_os.O_RDWR | real_os.O_CREAT))
again.release()
path.write_text(json.dumps({"pid": 1, "host": __import__("socket").gethostname()}))
print(directory_lock._may_run(json.loads(path.read_bytes())))
"""

# What others' modules need they have got before: they are not played.
WHOLE = """
import importlib, pkgutil, sys
import tensorflow
import tfrl

modules = [module.name for module in pkgutil.walk_packages(tfrl.__path__, "tfrl.")]
for name in modules:
    importlib.import_module(name)
for name in [name for name in sys.modules if name.partition(".")[0] == "tfrl"]:
    del sys.modules[name]
"""

IMPORTS = """
# These hold what Windows has not, and nothing imports them there.
posix = {
    "tfrl.distribute.weights.host_relay",
    "tfrl.system.child_main",
    "tfrl.system.orphan_guard",
    "tfrl.replay_service.engine.serving.arena_listener",
    "tfrl.replay_service.engine.storage.mapped_arena",
    "tfrl.replay_service.transport.arena_view",
}
refused = set()
for module in modules:
    try:
        importlib.import_module(module)
    except ImportError as error:
        assert "Windows" in str(error) or "Only Linux" in str(error), (module, error)
        refused.add(module)
assert refused == posix, refused ^ posix
from tfrl.environments import process_py_environment
try:
    process_py_environment.ProcessPyEnvironment(dict).start()
except NotImplementedError as error:
    print(error)
"""
REFUSAL = (
    "env_constructor: expected a POSIX system, such as Linux or macOS, to start this "
    "process, got Windows; do its work in your own process, for instance step "
    "environments in a BatchedPyEnvironment, or run the program in WSL.\n"
)


@pytest.mark.parametrize(
    ("scenario", "output"),
    [
        (SERVICE, "[[0, 1], [1, 2], [2, 3], [3, 4]]\n"),
        (LOCKS, "held\nTrue\n"),
    ],
    ids=["service", "locks"],
)
def test_without_the_names_that_windows_lacks(scenario, output, tmp_path):
    result = subprocess.run(
        [sys.executable, "-c", PRELUDE + scenario, str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=250,
    )
    assert result.returncode == 0, result.stderr
    assert result.stdout == output


def test_all_modules_are_imported_or_refuse_windows(run, tmp_path):
    script = tmp_path / "script.py"
    script.write_text(WHOLE + PRELUDE + IMPORTS)
    code, output, errors = run(str(script))
    assert code == 0, errors
    assert output == REFUSAL
