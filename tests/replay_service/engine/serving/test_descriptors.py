"""The limit of open files is raised where the system permits it."""

import sys

import pytest

from tfrl.replay_service.engine.serving import descriptors

resource = pytest.importorskip("resource")
UNLIMITED = resource.RLIM_INFINITY


@pytest.mark.parametrize(
    ("soft", "hard", "expected"),
    [
        (1024, 4096, 4096),
        (1024, 1 << 20, 1 << 16),
        (1024, UNLIMITED, 1 << 16),
        (1024, 1024, 1024),
        (1 << 18, 1 << 20, 1 << 18),
        (UNLIMITED, UNLIMITED, 1 << 16),
    ],
)
def test_the_limit_is_raised_up_to_what_the_system_permits(
    soft, hard, expected, monkeypatch
):
    limits = [soft, hard]
    monkeypatch.setattr(resource, "getrlimit", lambda _: tuple(limits))
    monkeypatch.setattr(
        resource, "setrlimit", lambda _, given: limits.__setitem__(slice(None), given)
    )
    assert descriptors.raise_limit() == expected
    assert limits[1] == hard
    assert soft in (expected, UNLIMITED) or limits[0] == expected


def test_a_limit_that_cannot_be_raised_is_taken_as_it_is(monkeypatch):
    def refuse(*_):
        raise ValueError

    monkeypatch.setattr(resource, "getrlimit", lambda _: (256, UNLIMITED))
    monkeypatch.setattr(resource, "setrlimit", refuse)
    assert descriptors.raise_limit() == 256


def test_a_system_without_this_limit_has_an_assumed_one(monkeypatch):
    monkeypatch.setattr(sys, "platform", "win32")
    assert descriptors.raise_limit() == 512
