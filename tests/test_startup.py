"""What importing tfrl changes in a process: what `startup` names, or nothing."""

import ast
import os
import pathlib
import subprocess
import sys

import pytest

from tfrl import startup
from tfrl.compilation import internals

ROOT = pathlib.Path(__file__).resolve().parents[1]
STATE = """
import gc, os, sys

def state():
    return {
        "`sys.meta_path`": [type(x).__name__ for x in sys.meta_path],
        "`sys.modules`": sorted(k for k, x in sys.modules.items() if x is None),
        "Python's garbage collector": (
            gc.isenabled(), gc.get_threshold(), gc.get_freeze_count() > 0
        ),
        "file descriptor 2": os.fstat(2)[:3],
        **{f"`{name}`": value for name, value in os.environ.items()},
    }

def changed(before, after):
    names = before.keys() | after.keys()
    return sorted(x for x in names if before.get(x) != after.get(x))
"""
# A TensorFlow that says what has changed while it is imported.
FAKE = """
import builtins, gc, logging
print(builtins.changed(builtins.first, builtins.state()))
get_logger = logging.getLogger
class config:
    list_physical_devices = staticmethod(lambda kind=None: [])
"""
WALK = """
import builtins
builtins.changed, builtins.state, builtins.first = changed, state, state()
import tfrl
print(changed(first, state()))
import tensorflow
print(changed(first, state()))
"""

BUFFERS = "--xla_gpu_enable_command_buffer"
USED_XLA = """
import os
import tensorflow as tf
from tfrl import startup

def choose():
    with startup.record_loops_on_gpu(lambda: True, print):
        pass

choose()
assert "WHILE" in os.environ["XLA_FLAGS"]

@tf.function(jit_compile=True)
def count():
    return tf.while_loop(lambda i: i < 3, lambda i: [i + 1], [tf.constant(0)])

print(count()[0].numpy())  # XLA ends the process at a flag that it does not know.
choose()
os.environ.pop("XLA_FLAGS")
choose()
print(os.environ.get("XLA_FLAGS"))
"""


def run(code, *path, **environment):
    """Runs a program in a fresh process; returns what it printed."""
    inherited = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("TF_", "TFRL_", "XLA_"))
    }
    ended = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
        env={
            **inherited,
            "PYTHONPATH": os.pathsep.join([*map(str, path), str(ROOT)]),
            **environment,
        },
    )
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def walked(folder, **environment):
    """What changed after the import of tfrl, in TensorFlow's, and after that."""
    (folder / "tensorflow.py").write_text(FAKE)
    output = run(STATE + WALK, folder, **environment)
    at_once, meanwhile, after = map(ast.literal_eval, output.splitlines())
    return at_once, meanwhile, after


def test_importing_tfrl_changes_what_startup_names(tmp_path):
    at_once, meanwhile, after = walked(tmp_path)
    assert at_once == ["`TF_CPP_MIN_LOG_LEVEL`", "`sys.meta_path`"]
    lasting = {*at_once, "Python's garbage collector"}
    passing = {"`TF_XLA_FLAGS`", "`sys.modules`", "file descriptor 2"}
    assert {*meanwhile} == lasting | passing
    assert {*after} == lasting
    assert {*meanwhile} | {"`XLA_FLAGS`"} == {*startup.CHANGES}


def test_plain_changes_nothing(tmp_path):
    assert walked(tmp_path, TFRL_STARTUP="plain") == ([], [], [])


@pytest.mark.parametrize("mode", ["", "plain"])
def test_flags_for_a_gpu_are_set_unless_it_is_plain(tmp_path, mode):
    (tmp_path / "tensorflow.py").write_text("from logging import getLogger")
    code = (
        "import os, sys, types\n"
        "from tfrl.system import quiet\n"
        "from tfrl import compilation, startup\n"
        # As on a machine with a GPU, whose devices TensorFlow has not made.
        "quiet.has_visible_gpu = lambda: True\n"
        "compilation.internals = sys.modules['tfrl.compilation.internals'] = (\n"
        "    types.SimpleNamespace(has_made_devices=lambda: False))\n"
        "startup.start()\n"
        "import tensorflow\n"
        "print('WHILE' in os.environ.get('XLA_FLAGS', ''))\n"
    )
    printed = run(code, tmp_path, TFRL_STARTUP=mode, TFRL_CACHE_DIR="off")
    assert printed == f"{not mode}\n"


def test_a_plain_process_trains_and_stays_as_it_was():
    code = STATE + (
        "first = state()\n"
        "import tfrl\n"
        "assert changed(first, state()) == []\n"
        "import gymnasium, keras, tensorflow, tensorflow_probability\n"
        "first = state()\n"
        "small = {'initial_collect_steps': 40, 'fc_layer_params': (4,)}\n"
        "small |= {'train_steps_per_iteration': 1, 'jit_compile': False}\n"
        "dqn = tfrl.DQN('CartPole-v1', seed=0, **small)\n"
        "dqn.learn(60, progress=False)\n"
        "print(changed(first, state()))\n"
        "print(dqn.loop.info().environment_steps, dqn.loop.info().train_steps)\n"
    )
    # Environments that pygame draws set this, with or without `plain`.
    printed = run(code, TFRL_STARTUP="plain", SDL_VIDEODRIVER="dummy")
    assert printed.splitlines()[-2] == "[]"
    steps, updates = map(int, printed.splitlines()[-1].split())
    assert steps >= 60
    assert updates > 0


def test_another_value_is_refused(monkeypatch):
    monkeypatch.setenv("TFRL_STARTUP", "plan")
    with pytest.raises(ValueError, match="TFRL_STARTUP: got 'plan', expected 'plain'"):
        startup.is_plain()


def test_a_second_start_changes_nothing():
    finders = list(sys.meta_path)
    startup.start()
    assert sys.meta_path == finders


@pytest.fixture
def choose(monkeypatch):
    """Returns a function that chooses the flags; it returns them and the lines."""

    def choose_for(flags="", has_gpu=True, has_made_devices=False):
        monkeypatch.setattr(internals, "has_made_devices", lambda: has_made_devices)
        monkeypatch.setenv("XLA_FLAGS", flags)
        lines = []
        with startup.record_loops_on_gpu(lambda: has_gpu, lines.append):
            pass
        return os.environ["XLA_FLAGS"], lines

    return choose_for


def test_loops_are_recorded_on_a_machine_with_a_gpu(choose):
    flags, lines = choose()
    assert f"{BUFFERS}=FUSION," in flags
    assert "WHILE" in flags
    assert lines == []


def test_other_flags_of_xla_stay(choose):
    flags, _ = choose("--xla_dump_to=/tmp/dump")
    assert flags.startswith(f"--xla_dump_to=/tmp/dump {BUFFERS}=")


@pytest.mark.parametrize("flags", [f"{BUFFERS}=", "flags.txt"])
def test_what_the_user_has_told_xla_is_not_changed(choose, flags):
    assert choose(flags) == (flags, [])


def test_no_flags_are_set_without_a_gpu(choose):
    assert choose(has_gpu=False, has_made_devices=True) == ("", [])


def test_one_line_says_when_it_is_too_late(choose):
    flags, [line] = choose(has_made_devices=True)
    assert flags == ""
    assert "Import tfrl first" in line
    assert BUFFERS in line


@pytest.mark.slow
def test_the_installed_xla_knows_the_flags_and_a_used_one_is_left_alone():
    counted, too_late, flags = run(USED_XLA).splitlines()
    assert (counted, flags) == ("3", "None")
    assert too_late.startswith("TensorFlow was used before tfrl was imported")
