import threading

import tensorflow as tf

from tfrl.compilation import python_threads


def test_a_foreign_threads_python_state_stays_between_calls():
    """Thread-local values are lost with the state; these are kept."""
    kept = threading.local()
    seen = []

    def call():
        python_threads.keep_thread_state()
        seen.append(getattr(kept, "value", None))
        kept.value = threading.get_ident()
        return []

    @tf.function
    def step():
        tf.numpy_function(call, [], [])

    for _ in range(50):
        step()
    first_calls = seen.count(None)
    # Without it, every call from another thread would be a first one.
    assert 1 <= first_calls < 25
    assert len(seen) == 50


def test_it_may_be_called_from_an_ordinary_thread():
    thread = threading.Thread(target=python_threads.keep_thread_state)
    thread.start()
    thread.join()
    assert not thread.is_alive()
    python_threads.keep_thread_state()
