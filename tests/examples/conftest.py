"""The process that runs the examples, which the modules here share."""

import pytest

from tests.examples.forks import Forks


@pytest.fixture(scope="session")
def forks(tmp_path_factory):
    forks = Forks(tmp_path_factory.mktemp("forks"))
    yield forks
    forks.close()


@pytest.fixture(scope="session")
def run(forks):
    return forks.run
