"""Settings that hold for every test: quiet, on the CPU, and without a display.

And the process whose forks run examples and scripts, which modules share.
"""

import os
import random

import pytest

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
os.environ.setdefault("SDL_VIDEODRIVER", "dummy")
os.environ.setdefault("MPLBACKEND", "Agg")

from tests.forks import Forks


def pytest_runtest_setup():
    """Lets layers without a seed draw the same weights in each run of a test.

    Keras takes their seeds from Python's generator.
    """
    random.seed(0)


@pytest.fixture(scope="session")
def forks(tmp_path_factory):
    forks = Forks(tmp_path_factory.mktemp("forks"))
    yield forks
    forks.close()


@pytest.fixture(scope="session")
def run(forks):
    return forks.run
