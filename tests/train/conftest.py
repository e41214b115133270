"""Takes the shared loops back after each test."""

import pytest

from tests.train import countdown_runs


@pytest.fixture(autouse=True)
def _take_back_loops():
    yield
    countdown_runs.take_back()
