"""The thread beside a program: results, exceptions, and its end."""

import gc
import threading

import pytest

from tfrl.environments.boundary import stepping_thread


def refuse(number):
    raise ValueError(f"number: got {number}")


def test_each_call_runs_on_one_other_thread_until_its_result_is_taken():
    thread = stepping_thread.SteppingThread()
    found = set()
    for number in range(3):
        assert not thread.is_busy
        thread.start(lambda n: (2 * n, threading.get_ident()), number)
        assert thread.is_busy
        doubled, identity = thread.result()
        assert doubled == 2 * number
        found.add(identity)
    assert len(found) == 1
    assert found != {threading.get_ident()}


def test_an_exception_is_raised_where_the_result_is_taken():
    thread = stepping_thread.SteppingThread()
    thread.start(refuse, 3)
    with pytest.raises(ValueError, match="number: got 3"):
        thread.result()
    assert not thread.is_busy
    thread.start(abs, -2)
    assert thread.result() == 2


def test_the_thread_ends_with_its_object_and_without_holding_up_the_program():
    thread = stepping_thread.SteppingThread()
    thread.start(threading.current_thread)
    own = thread.result()
    assert own.daemon
    del thread
    gc.collect()
    own.join(30)
    assert not own.is_alive()
