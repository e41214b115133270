import threading

import pytest

from tfrl.system import daemon_calls


def test_a_call_gives_its_result_or_its_exception():
    assert daemon_calls.start(lambda: threading.current_thread().daemon).result()
    with pytest.raises(ZeroDivisionError):
        daemon_calls.start(lambda: 1 / 0).result()


def test_a_call_that_hangs_holds_nobody():
    goes_on = threading.Event()
    hanging = daemon_calls.start(lambda: goes_on.wait() and "done")
    assert not hanging.done()
    goes_on.set()
    assert hanging.result() == "done"
