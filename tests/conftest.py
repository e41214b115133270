"""Settings that hold for every test: quiet, on the CPU, and without a display.

And the process whose forks run examples and scripts, which modules share.
"""

import gc
import os
import random

import pytest

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
os.environ.setdefault("SDL_VIDEODRIVER", "dummy")
os.environ.setdefault("MPLBACKEND", "Agg")

from tests.forks import Forks


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """Keeps the garbage collector from what lives as long as the process.

    To look through all that is imported and collected, again and again, took a third of
    the time of the collection, and much of the time of the tests after it.
    """
    gc.disable()
    result = yield
    gc.freeze()
    gc.set_threshold(700, 10, 100)
    gc.enable()
    return result


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
