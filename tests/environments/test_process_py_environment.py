"""Environments in processes: how programs start them, and how they end."""

import contextlib
import os
import select
import signal
import subprocess
import sys
import textwrap

import numpy as np
import pytest

from tfrl.environments import process_py_environment

# A user's script: without a guard, with classes defined in __main__.
DEFINE = """
import collections, os, re, sys, time
import numpy as np
from tfrl.environments import parallel_py_environment, py_environment
from tfrl.specs import array_spec
from tfrl.trajectories import time_step as ts

print("imported")
ALIVE = sys.argv[1] if len(sys.argv) > 1 else None
Seen = collections.namedtuple("Seen", "number")


class Mine(py_environment.PyEnvironment):
    def __init__(self, start):
        super().__init__()
        self.start = start
        self.alive = os.open(ALIVE, os.O_WRONLY) if ALIVE else None

    def observation_spec(self):
        return Seen(array_spec.ArraySpec((), np.int32))

    def action_spec(self):
        return array_spec.BoundedArraySpec((), np.int32, 0, 2)

    def modules(self):
        return set(sys.modules)

    def _reset(self):
        return ts.restart(Seen(np.int32(self.start)))

    def _step(self, action):
        if action == 1:
            time.sleep(1000)
        if action == 2:
            re.match("(a+)+b", "a" * 50)  # Native code that lets nothing else run.
        return ts.transition(Seen(np.int32(self.start + 10)), 1.0)
"""

START = """
makers = [lambda start=start: Mine(start) for start in range(2)]
env = parallel_py_environment.ParallelPyEnvironment(makers, start_serially=False)
env.reset()
"""

SCRIPT = DEFINE + START

PLAY = """
step = env.step(np.zeros(2, np.int32))
print(step.observation.number.tolist(), type(step.observation) is Seen)
print({"tensorflow", "keras"} & env.envs[0].modules())
"""


@pytest.fixture
def alive(tmp_path):
    """A named pipe that all workers hold open for writing as long as they live."""
    path = tmp_path / "alive"
    os.mkfifo(path)
    reading = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    yield str(path), reading
    os.close(reading)


def environ():
    return {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}


def run(*command, **kwargs):
    return subprocess.run(
        [sys.executable, *command],
        env=environ(),
        capture_output=True,
        text=True,
        timeout=120,
        **kwargs,
    )


def ended_within(reading, seconds):
    """Whether the pipe is closed by all its writers within `seconds`."""
    poller = select.poll()
    poller.register(reading, select.POLLIN)
    return bool(poller.poll(1000 * seconds))


EXPECTED = ["imported", "[10, 11] True", "set()"]


def test_a_script_needs_no_guard(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(SCRIPT + PLAY)
    result = run(str(script), cwd=tmp_path)
    assert (result.stdout.splitlines(), result.stderr) == (EXPECTED, "")


@pytest.mark.slow
def test_a_script_may_come_from_stdin():
    result = run("-", input=SCRIPT + PLAY)
    assert (result.stdout.splitlines(), result.stderr) == (EXPECTED, "")


@pytest.mark.slow
def test_cells_of_a_notebook_may_define_environments(capsys, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["notebook"])
    namespace = {"__name__": "__main__"}
    exec(SCRIPT, namespace)
    exec(PLAY, namespace)
    namespace["env"].close()
    assert capsys.readouterr().out.splitlines() == EXPECTED


@pytest.mark.slow
def test_processes_of_multiprocessing_may_start_workers(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        f"{DEFINE}\ndef main():\n{textwrap.indent(START + PLAY, '    ')}\n"
        "if __name__ == '__main__':\n"
        "    import multiprocessing\n"
        "    process = multiprocessing.get_context('spawn').Process(target=main)\n"
        "    process.start()\n"
        "    process.join()\n"
    )
    result = run(str(script))
    assert (result.stdout.splitlines(), result.stderr) == (["imported", *EXPECTED], "")


@pytest.mark.parametrize("ending", ["os._exit(0)", "raise KeyError"])
def test_workers_end_when_the_script_does(tmp_path, alive, ending):
    path, reading = alive
    result = run("-c", f"{SCRIPT}\n{ending}", path)
    assert result.stdout.splitlines() == ["imported"]
    assert ended_within(reading, 5)


@pytest.mark.parametrize(
    "action",
    [
        0,
        1,
        pytest.param(
            2,
            marks=pytest.mark.skipif(
                sys.platform != "linux", reason="the kernel has to help"
            ),
        ),
    ],
)
def test_workers_end_when_the_script_is_killed(alive, action):
    path, reading = alive
    code = f"while True: env.step(np.array([{action}] * 2))"
    with running(code, path) as script:
        # So that the workers are in their steps.
        assert not ended_within(reading, 0.1)
        script.send_signal(signal.SIGKILL)
    assert ended_within(reading, 5)


def test_ctrl_c_is_the_parent_s_alone(alive):
    path, reading = alive
    code = (
        # A shell ignores it in processes that it starts in the background.
        "import signal\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "try:\n"
        "    env.step(np.array([1, 1]))\n"
        "except KeyboardInterrupt:\n"
        "    print('interrupted', flush=True)\n"
    )
    with running(code, path) as script:
        assert not ended_within(reading, 0.1)
        # The terminal sends it to all processes of the group.
        os.killpg(script.pid, signal.SIGINT)
        assert script.communicate(timeout=60) == ("interrupted\n", "")
    assert script.returncode == 0
    assert ended_within(reading, 5)


@contextlib.contextmanager
def running(code, path):
    """Returns a script that makes its environment, then runs `code`."""
    with subprocess.Popen(
        [sys.executable, "-c", f"{SCRIPT}\nprint('go', flush=True)\n{code}", path],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environ(),
        text=True,
        process_group=0,
    ) as script:
        try:
            assert [script.stdout.readline() for _ in range(2)] == [
                "imported\n",
                "go\n",
            ]
            yield script
        finally:
            script.kill()


def test_flat_actions_and_time_steps():
    def constructor():
        from tfrl.environments import suite_gym

        return suite_gym.load("CartPole-v1")

    environment = process_py_environment.ProcessPyEnvironment(constructor, flatten=True)
    with pytest.raises(RuntimeError, match="before start"):
        environment.reset()
    environment.start(wait_to_start=False)
    environment.wait_start()
    with pytest.raises(RuntimeError, match="start\\(\\) again"):
        environment.start()
    first = environment.reset()
    assert [np.shape(leaf) for leaf in first] == [(), (), (), (4,)]
    assert environment.step([np.int64(1)])[0] == 1
    assert environment.render().shape == (400, 600, 3)
    environment.close()
    environment.close()
    with pytest.raises(RuntimeError, match="env_constructor: the environment is cl"):
        environment.step([np.int64(1)])
