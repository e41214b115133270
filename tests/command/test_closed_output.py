"""Commands whose reader has gone, as after `tfrl list settings | head -1`."""

import os
import subprocess
import sys

import pytest

from tests.forks import REPOSITORY
from tfrl.command import closed_output


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
    with pytest.raises(BrokenPipeError), closed_output.ends_in_silence():
        raise BrokenPipeError


def test_a_command_that_was_started_without_standard_output_ends(monkeypatch):
    monkeypatch.setattr(sys, "stdout", None)
    ended = False
    with closed_output.ends_in_silence():
        print("nowhere")
        ended = True
    assert ended
