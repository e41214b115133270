"""Calls of Python from a GPU: all but the GPU.

A second name for the handler on the CPU stands for the platform CUDA, and `memmove`
for the driver's copies. So the copies, their order and the calls are real.
"""

import contextlib
import ctypes
import functools
import gc
import warnings

import numpy as np
import pytest
import tensorflow as tf

from tfrl.compilation import program_store
from tfrl.compilation.python_calls import (
    gpu_calls,
    gpu_calls_trial,
    host_calls,
    xla_ffi,
)
from tfrl.train.loops import placement

pytestmark = pytest.mark.cpu  # It stands for the GPU.

STREAM = 7


class Moves:
    """Copies within the memory of the host, and notes what it is told."""

    def __init__(self):
        self.held, self.told = {}, []

    def allocate(self, size):
        buffer = ctypes.create_string_buffer(size)
        self.held[ctypes.addressof(buffer)] = buffer
        return ctypes.addressof(buffer)

    def free(self, address):
        del self.held[address]

    def copy_to_host(self, to, start, size, stream):
        assert to in self.held
        self.told.append(("to host", size, stream))
        ctypes.memmove(to, start, size)

    def copy_to_device(self, to, start, size, stream):
        assert start in self.held
        self.told.append(("to device", size, stream))
        ctypes.memmove(to, start, size)

    def wait(self, stream):
        self.told.append(("wait", stream))


@functools.cache
def registered():
    """The memory of the handler, and the handler, which XLA keeps for good."""
    memory = Moves()
    answer = functools.partial(host_calls._answer_on, memory, lambda context: STREAM)
    return memory, xla_ffi.register("tfrl_staged_call", answer)


@pytest.fixture
def memory(monkeypatch):
    """Lets programs call as from a GPU; returns the memory."""
    memory, _ = registered()
    memory.told.clear()
    monkeypatch.setattr(host_calls, "_TARGET", "tfrl_staged_call")
    return memory


def test_the_trial_passes_on_the_cpu():
    assert gpu_calls_trial.run("CPU:0") == "passed"


def test_the_trial_passes_when_each_buffer_is_copied(memory):
    assert gpu_calls_trial.run("CPU:0") == "passed"
    # A number and three weights; the weights, a bool and the channel's variable.
    assert memory.told[:6] == [
        ("to host", 8, STREAM),
        ("to host", 12, STREAM),
        ("wait", STREAM),
        ("to device", 12, STREAM),
        ("to device", 1, STREAM),
        ("to device", 8, STREAM),
    ]
    assert memory.told == memory.told[:6] * (len(memory.told) // 6)


def test_scalars_and_empty_arrays_are_copied(memory):
    channel = host_calls.CallChannel()

    def reverse(empty, x):
        return [x[::-1], empty]

    @tf.function(jit_compile=True, autograph=False)
    def run(empty, x):
        specs = [tf.TensorSpec([3], tf.uint8), tf.TensorSpec([0, 2], tf.float64)]
        return host_calls.host_call(reverse, [empty, x], specs, channel)

    x, empty = run(tf.zeros([0, 2], tf.float64), tf.constant([1, 2, 3], tf.uint8))
    assert x.numpy().tolist() == [3, 2, 1]
    assert empty.shape == (0, 2)


def test_the_memory_is_freed_with_the_program(memory):
    before = set(memory.held)
    gpu_calls_trial.run("CPU:0")
    gc.collect()
    assert set(memory.held) <= before


def test_the_installed_xla_takes_a_handler_for_cuda():
    answer = functools.partial(host_calls._answer_on, Moves(), xla_ffi.stream_of)
    kept = xla_ffi.register("tfrl_never_called", answer, "CUDA")
    assert kept is not None


def test_a_missing_driver_is_an_error():
    with pytest.raises(NotImplementedError, match=r"NVIDIA's driver cannot be used"):
        gpu_calls.CudaMemory("libno_such_driver.so.1")


def test_an_error_of_the_driver_is_an_exception():
    with pytest.raises(RuntimeError, match=r"NVIDIA's driver: error 201"):
        gpu_calls._check(201)


@pytest.mark.parametrize(
    ("value", "device", "are_on"),
    [
        (None, "/device:GPU:0", True),
        (None, "/device:CPU:1", False),
        ("0", "/device:GPU:0", False),
        ("trial", "/job:localhost/replica:0/task:0/device:GPU:0", True),
    ],
)
def test_they_are_on_for_a_gpu_unless_the_variable_says_no(
    monkeypatch, value, device, are_on
):
    monkeypatch.setattr(gpu_calls, "_trial_passes", lambda: True)
    if value is None:
        monkeypatch.delenv(gpu_calls.VARIABLE, raising=False)
    else:
        monkeypatch.setenv(gpu_calls.VARIABLE, value)
    assert gpu_calls.are_on(device) == are_on


@pytest.mark.parametrize("jit_compile", [False, True])
@pytest.mark.parametrize("passes", [False, True])
def test_a_compiled_loop_is_one_program_if_the_trial_passes(
    monkeypatch, passes, jit_compile
):
    monkeypatch.setattr(gpu_calls, "_trial_passes", lambda: passes)
    monkeypatch.setattr(placement, "device_of", lambda _: "/device:GPU:0")
    placed = placement.placement_of([], True, jit_compile=jit_compile)
    assert placed.is_split == (not (passes and jit_compile))


@contextlib.contextmanager
def no_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def test_a_trial_that_passed_is_not_made_again(tmp_path, monkeypatch):
    answers = ["no memory", None]  # In the first process, in the second.
    monkeypatch.setattr(gpu_calls, "_try", lambda: answers.pop(0))
    monkeypatch.setenv(program_store.VARIABLE, str(tmp_path))
    failed = pytest.warns(RuntimeWarning, match="consist of two programs .*: no memory")
    for told, passes in ((failed, False), (no_warning(), True), (no_warning(), True)):
        gpu_calls._trial_passes.cache_clear()  # As in another process.
        with told:
            assert gpu_calls._trial_passes() == passes
    gpu_calls._trial_passes.cache_clear()
    assert not answers


@pytest.mark.parametrize(
    ("program", "obstacle"),
    [
        ("print('noise'); print('passed')", None),
        ("print('weights: got 1')", "weights: got 1"),
        ("raise ValueError('of memory')", "it ended with 1, ValueError: of memory"),
        ("import os; os.abort()", "it ended with -6, "),
        ("import time; time.sleep(200)", "it did not end in 1 s"),
    ],
)
def test_it_is_told_why_a_trial_failed(monkeypatch, program, obstacle):
    monkeypatch.setattr(gpu_calls, "_TRIAL", program)
    if "sleep" in program:
        monkeypatch.setattr(gpu_calls, "_TRIAL_SECONDS", 1.0)
    assert gpu_calls._try() == obstacle


@pytest.mark.slow  # It imports TensorFlow once more.
def test_the_trial_fails_without_a_gpu(monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    assert "expected GPU:0" in gpu_calls._try()


def test_arrays_of_a_call_are_the_sites_own(memory):
    seen = []
    channel = host_calls.CallChannel()

    def call(x):
        seen.append(x.copy())
        return [x + 1]

    @tf.function(jit_compile=True, autograph=False)
    def run(x):
        (x,) = host_calls.host_call(call, [x], [tf.TensorSpec([2])], channel)
        (x,) = host_calls.host_call(call, [x], [tf.TensorSpec([2])], channel)
        return x

    assert run(tf.constant([1.0, 5.0])).numpy().tolist() == [3.0, 7.0]
    np.testing.assert_array_equal(seen, [[1, 5], [2, 6]])
