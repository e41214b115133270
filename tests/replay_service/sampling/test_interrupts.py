"""Ctrl-C while a program waits for samples that do not come."""

import os
import signal
import threading

import pytest
import tensorflow as tf

from tfrl.replay_service.sampling import interrupts
from tfrl.system import interrupts as requests

pytestmark = pytest.mark.skipif(os.name != "posix", reason="needs signals")

# Every wait is interrupted twice, and then goes on with what has been written.
SCRIPT = """
import os, signal, threading
import numpy as np
import tensorflow as tf
from tfrl import replay_service as reverb

server = reverb.Server([reverb.Table.queue("empty", 100)])
client = server.localhost_client()
dataset = reverb.TrajectoryDataset(
    f"localhost:{server.port}", "empty", tf.float64, tf.TensorShape([1]), 4
)
batches = dataset.batch(2)
mapped = batches.map(lambda sample: sample.data)
waits = {
    "rows": dataset,
    "batches": batches,
    "mapped": mapped,
    "prefetched": mapped.prefetch(2),
    "in a function": batches,
}
for name, dataset in waits.items():
    iterator = iter(dataset)
    wait = lambda: next(iterator)
    if name == "in a function":
        wait = tf.function(wait)
    for _ in range(2):
        timer = threading.Timer(0.4, os.kill, (os.getpid(), signal.SIGINT))
        timer.start()
        try:
            wait()
        except KeyboardInterrupt:
            print(name, "interrupted", flush=True)
        timer.join()
    for i in range(12):
        client.insert(np.array(float(i)), {"empty": 1.0})
    wait()
    print(name, "went on", flush=True)
    client.reset("empty")
server.stop()
"""


@pytest.mark.slow
def test_ctrl_c_in_a_waiting_next_is_a_keyboard_interrupt(run, tmp_path):
    (tmp_path / "script.py").write_text(SCRIPT)
    code, output, errors = run(str(tmp_path / "script.py"))
    assert code == 0, errors
    assert output.splitlines() == [
        f"{name} {what}"
        for name in ("rows", "batches", "mapped", "prefetched", "in a function")
        for what in ("interrupted", "interrupted", "went on")
    ]


def test_handlers_and_wakeup_descriptors_of_the_program_stay():
    def handler(*_):
        pass

    watch = interrupts.InterruptWatch()
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    before = signal.signal(signal.SIGINT, handler)
    descriptor = signal.set_wakeup_fd(writing)
    try:
        watch.start()
        assert signal.getsignal(signal.SIGINT) is handler
        assert signal.set_wakeup_fd(-1) == writing
        signal.signal(signal.SIGINT, signal.default_int_handler)
        watch.start()
        assert signal.getsignal(signal.SIGINT) == watch.handle
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
        assert watch.interrupt() == 0
        watch.after_fork()
        assert signal.set_wakeup_fd(-1) == -1
    finally:
        signal.set_wakeup_fd(descriptor)
        signal.signal(signal.SIGINT, before)
        os.close(reading)
        os.close(writing)


@pytest.fixture
def watch():
    """A watch that has started, in place of the signal handling of other tests."""
    watch = interrupts.InterruptWatch()
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    descriptor = signal.set_wakeup_fd(-1)
    watch.start()
    yield watch
    watch.after_fork()
    signal.signal(signal.SIGINT, before)
    signal.set_wakeup_fd(descriptor)


def ends_a_wait(watch):
    """Whether an interrupt ends a wait of the main thread that begins now."""

    def look(_):
        return tf.numpy_function(lambda: watch.interrupt() != 0, [], tf.bool)

    return bool(next(iter(tf.data.Dataset.range(1).map(look).prefetch(1))))


def test_a_signal_that_another_handler_got_ends_no_later_wait(watch):
    before = signal.signal(signal.SIGINT, lambda *_: None)
    signal.raise_signal(signal.SIGINT)
    assert not ends_a_wait(watch)
    signal.signal(signal.SIGINT, before)
    assert not ends_a_wait(watch)


def test_a_request_to_stop_ends_no_later_wait(watch):
    with requests.requested([signal.SIGINT], lambda: "a step") as stops:
        signal.raise_signal(signal.SIGINT)
        assert stops()
    assert not ends_a_wait(watch)
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)


def test_a_new_dataset_forgets_signals_that_were_handled(watch):
    signal.signal(signal.SIGINT, lambda *_: None)
    signal.raise_signal(signal.SIGINT)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    watch.start()
    assert not ends_a_wait(watch)


def test_other_threads_start_nothing():
    watch = interrupts.InterruptWatch()
    before = signal.getsignal(signal.SIGINT)
    thread = threading.Thread(target=watch.start)
    thread.start()
    thread.join()
    assert signal.getsignal(signal.SIGINT) == before
    assert watch.interrupt() == 0
