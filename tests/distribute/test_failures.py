"""Runs whose processes are killed and stopped."""

import secrets

import numpy as np
import pytest

from tests.distribute import failures


def frames(number, *ranges):
    return [(number, frame) for each in ranges for frame in range(*each)]


# Actor 0 has lost frames 5 to 9, and actor 1 none.
HELD = frames(0, (0, 5), (10, 20)) + frames(1, (0, 8))


@pytest.mark.parametrize(
    ("held", "losses", "expected"),
    [
        (HELD, [], (0, 5, 5)),
        (HELD, [{0: (5, 10)}], (0, 5, 0)),
        (HELD, [{0: (6, 10)}], (0, 5, 0)),  # One on the way home.
        (HELD, [{0: (7, 10)}], (0, 5, 1)),  # Frames that a checkpoint had.
        (HELD, [{1: (0, 20)}], (0, 5, 5)),  # The server of another actor has failed.
        (HELD, [{0: (5, 6)}, {0: (6, 10)}], (0, 5, 0)),
        (HELD + frames(1, (3, 4)), [{0: (5, 10)}], (1, 5, 0)),
    ],
)
def test_missing_frames_need_a_failure_that_explains_them(
    held, losses, expected, monkeypatch, tmp_path
):
    servers = np.array(held)[::2], np.array(held)[1::2]
    monkeypatch.setattr(failures, "frames_written", lambda _: servers)
    found = failures.audit(tmp_path, [], losses)
    assert (found.doubled, found.missing, found.unexplained) == expected


# No code of a user runs in a replay server.
CASES = [
    (role, fault)
    for role in failures.ROLES
    for fault in failures.FAULTS
    if (role, fault) != ("shard", "exception")
]


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize(("role", "fault"), CASES)
def test_a_process_that_fails_comes_back_and_loses_no_more_than_told(
    role, fault, monkeypatch, tmp_path
):
    # The servers of the run let this process's clients in, too.
    monkeypatch.setenv("TFRL_REPLAY_TOKEN", secrets.token_hex(32))
    failures.run_case(role, fault, tmp_path)
