"""How commands end: without a reader, and by Ctrl-C in their first seconds."""

import os
import signal
import subprocess
import sys

import pytest

from tests.forks import ENVIRONMENT, REPOSITORY
from tfrl.command import program

NOISE = "I0000 00:00:1.0 1 cpu_feature_guard.cc:1] This binary is optimized."
# Stands for TensorFlow, whose import takes seconds.
WAITING = f"""
import os, sys, time
os.write(2, b"{NOISE}\\n")
print("importing", flush=True)
time.sleep(100)
"""
# As an extension module does whose own imports fail.
FAILING = f"""
try:
    exec({WAITING!r})
except BaseException as error:
    raise ImportError("initialization failed") from error
"""


def interrupted(tmp_path, tensorflow, *command):
    """Returns what a process leaves that gets a SIGINT while it imports TensorFlow."""
    (tmp_path / "tensorflow").mkdir()
    (tmp_path / "tensorflow" / "__init__.py").write_text(tensorflow)
    path = os.pathsep.join([str(tmp_path), str(REPOSITORY)])
    with subprocess.Popen(
        [sys.executable, *command],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**ENVIRONMENT, "PYTHONPATH": path, "TF_CPP_MIN_LOG_LEVEL": "2"},
    ) as process:
        assert process.stdout.readline() == "importing\n"
        process.send_signal(signal.SIGINT)
        output, errors = process.communicate(timeout=200)
    return process.returncode, output, errors


@pytest.mark.parametrize("tensorflow", [WAITING, FAILING], ids=["plain", "failing"])
def test_a_script_that_is_interrupted_while_it_imports_ends_quietly(
    tmp_path, tensorflow
):
    command = ("-m", "examples.train_dqn", "--env=CliffWalking-v1")
    code, output, errors = interrupted(tmp_path, tensorflow, *command)
    assert (code, output) == (130, "")
    if tensorflow is WAITING:
        assert errors == (
            "DQN on CliffWalking-v1: default settings, for environments such as "
            "CartPole-v1.\n"
        )
    assert "Traceback" not in errors
    assert not (tmp_path / "logs").exists()


@pytest.mark.parametrize("imported", ["tfrl", "examples"])
def test_a_program_of_ones_own_keeps_its_traceback(tmp_path, imported):
    script = f"import {imported}, tensorflow"
    code, _, errors = interrupted(tmp_path, WAITING, "-c", script)
    assert code == -signal.SIGINT
    assert errors.rstrip().endswith("KeyboardInterrupt")
    assert NOISE not in errors


def test_an_error_that_comes_from_an_interrupt_counts_as_one():
    interrupt = KeyboardInterrupt()
    raised = ImportError("stopped")
    raised.__context__ = interrupt
    assert program.is_interrupt(interrupt)
    assert program.is_interrupt(raised)
    assert not program.is_interrupt(ValueError("wrong"))


@pytest.mark.parametrize("words", [["--version"], ["list", "settings"]])
def test_a_command_without_a_reader_ends_in_silence(words):
    reading, writing = os.pipe()
    os.close(reading)
    try:
        ended = subprocess.run(
            [sys.executable, "-m", "tfrl", *words],
            stdout=writing,
            stderr=subprocess.PIPE,
            cwd=REPOSITORY,
            text=True,
        )
    finally:
        os.close(writing)
    assert (ended.returncode, ended.stderr) == (0, "")


def test_the_broken_pipe_of_another_process_is_an_error():
    with pytest.raises(BrokenPipeError), program.ends_in_silence():
        raise BrokenPipeError


def test_a_command_that_was_started_without_standard_output_ends(monkeypatch):
    monkeypatch.setattr(sys, "stdout", None)
    ended = False
    with program.ends_in_silence():
        print("nowhere")
        ended = True
    assert ended
