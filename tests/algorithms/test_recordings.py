"""Episodes that are recorded: how far that is, on a terminal."""

import contextlib
import os
import sys
import termios

from tfrl import environments, policies
from tfrl.algorithms import recordings


def test_a_bar_counts_the_episodes_on_a_terminal_alone(tmp_path, monkeypatch, capsys):
    environment = environments.TFPyEnvironment(
        environments.suite_gym.load("CartPole-v1", max_episode_steps=3)
    )
    policy = policies.RandomTFPolicy(
        environment.time_step_spec(), environment.action_spec()
    )
    frames = recordings.record(environment, policy, 2, str(tmp_path / "a.tfrecord"), 0)
    assert frames == 8  # Three steps and a boundary each.
    assert capsys.readouterr().err == ""
    master, slave = os.openpty()
    termios.tcsetwinsize(slave, (24, 100))
    with os.fdopen(slave, "w") as terminal, monkeypatch.context() as patched:
        patched.setattr(sys, "stderr", terminal)
        recordings.record(environment, policy, 2, str(tmp_path / "b.tfrecord"), 0)
    shown = b""
    with contextlib.suppress(OSError):  # The end of a terminal is an error on Linux.
        while chunk := os.read(master, 10_000):
            shown += chunk
    os.close(master)
    assert b"| 0/2 [" in shown
