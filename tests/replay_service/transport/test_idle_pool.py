"""Connections are used again, closed beyond a few, and left alone in forks."""

import os
import threading
import traceback

import pytest

from tfrl.replay_service.transport import idle_pool


def test_what_was_kept_last_is_taken_first():
    closed = []
    pool = idle_pool.IdlePool(closed.append)
    assert pool.take() is None
    for i in range(6):
        pool.keep(i)
    assert closed == [4, 5]
    assert pool.take() == 3
    pool.clear()
    assert sorted(closed) == [0, 1, 2, 4, 5]
    assert pool.take() is None


# Forking a process with threads is what is tested; Python 3.12 and later warn of it.
@pytest.mark.filterwarnings("ignore:.*use of fork:DeprecationWarning")
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_fork_starts_empty_with_a_lock_of_its_own():
    closed = []
    pool = idle_pool.IdlePool(closed.append)
    pool.keep(1)
    held, done = threading.Event(), threading.Event()

    def hold():
        with pool._lock:
            held.set()
            done.wait(60)

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait(10)
    child = os.fork()
    if not child:
        try:
            assert pool._lock.acquire(blocking=False)
            assert (pool.take(), closed) == (None, [])
            os._exit(0)
        except BaseException:
            traceback.print_exc()
            os._exit(1)
    done.set()
    thread.join(10)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert pool.take() == 1
