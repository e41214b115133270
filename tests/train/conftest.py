"""Takes the loops of `used_loops` back after each test."""

import pytest

from tests.train import used_loops


@pytest.fixture(autouse=True)
def _take_back_loops():
    yield
    used_loops.take_back()
