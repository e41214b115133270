"""XLA records loops in command buffers on a GPU, unless the user says otherwise."""

import os

import pytest

from tfrl.compilation import gpu_flags, internals

BUFFERS = "--xla_gpu_enable_command_buffer"
SCRIPT = """
import os
import tensorflow as tf
from tfrl.compilation import gpu_flags

def choose():
    with gpu_flags.chosen(lambda: True, print):
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


@pytest.fixture
def choose(monkeypatch):
    """Returns a function that chooses the flags; it returns them and the lines."""

    def run(flags="", has_gpu=True, has_made_devices=False):
        monkeypatch.setattr(internals, "has_made_devices", lambda: has_made_devices)
        monkeypatch.setenv("XLA_FLAGS", flags)
        lines = []
        with gpu_flags.chosen(lambda: has_gpu, lines.append):
            pass
        return os.environ["XLA_FLAGS"], lines

    return run


def test_loops_are_recorded_on_a_machine_with_a_gpu(choose):
    flags, lines = choose()
    assert f"{BUFFERS}=FUSION," in flags
    assert "WHILE" in flags
    assert lines == []


def test_other_flags_of_the_user_stay(choose):
    flags, _ = choose("--xla_dump_to=/tmp/dump")
    assert flags.startswith(f"--xla_dump_to=/tmp/dump {BUFFERS}=")


@pytest.mark.parametrize("flags", [f"{BUFFERS}=", "flags.txt"])
def test_what_the_user_has_said_is_not_changed(choose, flags):
    assert choose(flags) == (flags, [])


def test_nothing_changes_without_a_gpu(choose):
    assert choose(has_gpu=False, has_made_devices=True) == ("", [])


def test_one_line_says_when_it_is_too_late(choose):
    flags, [line] = choose(has_made_devices=True)
    assert flags == ""
    assert "Import tfrl first" in line
    assert BUFFERS in line


def test_the_installed_xla_knows_the_flags_and_a_used_one_is_left_alone(run, tmp_path):
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    ended = run(str(script))
    assert ended.code == 0, ended.errors
    counted, too_late, flags = ended.output.splitlines()
    assert (counted, flags) == ("3", "None")
    assert too_late.startswith("TensorFlow was used before tfrl was imported")
