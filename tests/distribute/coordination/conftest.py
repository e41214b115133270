"""What several modules of tests share."""

import threading

import pytest

from tfrl.distribute.coordination.coordinator import Coordinator


@pytest.fixture(scope="module")
def coordinator(run):
    """A coordinator of a run, that a thread updates, as a supervisor's loop would."""
    made = Coordinator(run)
    is_over = threading.Event()

    def update():
        while not is_over.wait(0.02):
            made.update()

    thread = threading.Thread(target=update)
    thread.start()
    yield made
    is_over.set()
    thread.join()
    made.member.start(0).stop(0.0)
