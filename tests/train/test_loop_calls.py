"""A loop divides its iterations into calls, and Ctrl-C ends it between two of them."""

import contextlib
import os
import pathlib
import signal
import time

import keras
import numpy as np
import pytest
import tensorflow as tf

from tests.train import used_loops
from tfrl import testing
from tfrl.agents import DqnAgent, ReinforceAgent
from tfrl.networks import ActorDistributionNetwork, QNetwork
from tfrl.replay_buffers import TFUniformReplayBuffer
from tfrl.specs import array_spec
from tfrl.train import EpisodicLoop, OffPolicyLoop
from tfrl.utils import call_sizes

SCRIPT = pathlib.Path(__file__).parent / "scripts" / "hanging.py"


@pytest.fixture(autouse=True)
def python_handles_sigint():
    """A process that was started in the background ignores it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


class Signalling(testing.CountingEnvironment):
    """Sends SIGINT to this process in some of its steps, counted over all episodes."""

    def __init__(self, signal_at=()):
        spec = array_spec.BoundedArraySpec((1,), np.float32, 0, 5, "count")
        super().__init__(5, observation_spec=spec)
        self._signal_at = signal_at

    def _step(self, action):
        if self.num_steps in self._signal_at:
            os.kill(os.getpid(), signal.SIGINT)
        return super()._step(action)


def build_loop(environment, kind, **kwargs):
    specs = environment.time_step_spec(), environment.action_spec()
    shape = environment.observation_spec(), environment.action_spec()
    optimizer = keras.optimizers.Adam(1e-2)
    if kind is OffPolicyLoop:
        network = QNetwork(*shape, fc_layer_params=(), seed=0)
        agent = DqnAgent(*specs, q_network=network, optimizer=optimizer, seed=0)
        kwargs = {"initial_collect_steps": 50, "sample_batch_size": 4, **kwargs}
    else:
        actor = ActorDistributionNetwork(*shape, fc_layer_params=(), seed=0)
        agent = ReinforceAgent(*specs, actor, optimizer, seed=0)
    agent.initialize()
    buffer = TFUniformReplayBuffer(agent.collect_data_spec, 1, 200, seed=0)
    return kind(environment, agent, buffer, seed=0, **kwargs)


pool = used_loops.Pool(build_loop)


def make_loop(kind=OffPolicyLoop, signal_at=(), **kwargs):
    return pool.take(Signalling(signal_at), kind=kind, **kwargs)


def state(loop):
    held = [*loop.agent.variables(), *loop._replay_buffer.variables(), loop._step]
    return [v.numpy().copy() for v in held]


def assert_same_states(one, other):
    for ours, theirs in zip(one, other, strict=True):
        np.testing.assert_array_equal(ours, theirs)


class Spy:
    """Records the sizes of a loop's calls."""

    def __init__(self, loop, monkeypatch):
        self._call = loop._call
        self.sizes = []
        monkeypatch.setattr(loop, "_call", self)

    def __call__(self, position, number, loss_sum):
        self.sizes.append(int(number))
        return self._call(position, number, loss_sum)

    def __getattr__(self, name):
        return getattr(self._call, name)


LOOPS = pytest.mark.parametrize(
    ("kind", "arguments"),
    [
        (OffPolicyLoop, {}),
        pytest.param(
            OffPolicyLoop,
            {"sampling": "variables", "collect_steps_per_iteration": 2},
            marks=pytest.mark.slow,
        ),
        pytest.param(OffPolicyLoop, {"jit_compile": True}, marks=pytest.mark.slow),
        (EpisodicLoop, {}),
    ],
)


@pytest.mark.slow
@LOOPS
def test_the_division_into_calls_shows_in_no_result(monkeypatch, kind, arguments):
    sizes, infos, states = [], [], []
    for largest in (23, 7):
        with monkeypatch.context() as patch:
            loop = make_loop(kind, **arguments)
            # The first call of a new loop only traces.
            first = [] if loop.trace_count() else [0]
            patch.setattr(
                call_sizes.CallSizes,
                "choose",
                lambda self, left, largest=largest: min(left, largest),
            )
            spy = Spy(loop, patch)
            infos.append(loop.run(23))
        sizes.append(spy.sizes[len(first) :])
        assert spy.sizes[: len(first)] == first
        states.append(state(loop))
        assert loop.trace_count() == 1
        pool.take_back()
    assert sizes == [[23], [7, 7, 7, 2]]
    assert infos[0] == infos[1]
    assert_same_states(*states)


def test_what_takes_less_than_half_a_second_is_one_call(monkeypatch):
    loop = make_loop()
    loop.run(100)
    spy = Spy(loop, monkeypatch)
    for number in (100, 1, 5):
        loop.run(number)
    assert spy.sizes == [100, 1, 5]


def test_the_loss_is_the_mean_over_all_calls(monkeypatch):
    monkeypatch.setattr(call_sizes.CallSizes, "choose", lambda self, left: min(left, 4))
    one_by_one = make_loop()
    losses = [one_by_one.run(1).loss for _ in range(6)]
    pool.take_back()
    together = make_loop()
    np.testing.assert_allclose(together.run(6).loss, np.mean(losses), rtol=1e-12)


@pytest.mark.parametrize(
    ("kind", "arguments"),
    [
        (OffPolicyLoop, {}),
        pytest.param(OffPolicyLoop, {"jit_compile": True}, marks=pytest.mark.slow),
        pytest.param(EpisodicLoop, {}, marks=pytest.mark.slow),
    ],
)
def test_an_interrupt_ends_a_long_run_and_the_loop_goes_on(kind, arguments):
    loop = make_loop(kind, (400,), **arguments)
    with pytest.raises(KeyboardInterrupt):
        loop.run(100_000_000)
    assert 0 < loop.iteration < 100_000_000
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    loop.run(10)
    info, found = loop.info(), state(loop)
    assert loop.trace_count() == 1
    pool.take_back()
    other = make_loop(kind, **arguments)
    other.run(info.iteration)
    assert_same_states(found, state(other))
    assert info == other.info() or np.isnan(info.loss)


@pytest.mark.slow
def test_an_interrupt_ends_the_initial_collection_which_goes_on(tmp_path, monkeypatch):
    """In the same loop, and in another one that restores its checkpoint."""
    monkeypatch.setattr(
        call_sizes.CallSizes, "choose", lambda self, left: min(left, 20)
    )
    loop = make_loop(signal_at=(10,))
    with pytest.raises(KeyboardInterrupt):
        loop.run(3)
    collected = int(loop._step)
    assert loop.iteration == 0
    assert 0 < collected < 50
    path = tf.train.Checkpoint(**loop.checkpoint_items()).write(str(tmp_path / "c"))
    restored = make_loop()
    tf.train.Checkpoint(**restored.checkpoint_items()).read(path)
    for each in (loop, restored):
        each.run(3)
        assert int(each._step) == 53
    states = state(loop), state(restored)
    pool.take_back()
    other = make_loop()
    other.run(3)
    for found in states:
        assert_same_states(found, state(other))


def test_no_iterations_collect_the_initial_experience():
    loop = make_loop()
    assert np.isnan(loop.run(0).loss)
    assert int(loop._step) == 50


@contextlib.contextmanager
def started(forks, *arguments):
    """Starts the script; yields it and the process whose step hangs."""
    fork = forks.start(str(SCRIPT), *arguments)
    try:
        fork.wait_for(lambda: fork.output.endswith("\n"))
        word, pid = fork.output.split()
        assert word == "hanging"
        yield fork, int(pid)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(fork.pid, signal.SIGKILL)


@pytest.mark.slow
@pytest.mark.parametrize("arguments", [["loop"], ["loop", "compiled"]])
def test_two_interrupts_end_a_loop_whose_environment_hangs(arguments, forks):
    # XLA runs a compiled loop, and so the step, on the main thread or on another one.
    with started(forks, *arguments) as (fork, _):
        os.kill(fork.pid, signal.SIGINT)
        first = "SIGINT: waiting for step 362 of Hanging. A second one"
        fork.wait_for(lambda: first in fork.errors)
        ended = fork.end(signal.SIGINT)
        does_not_return = "SIGINT: step 362 of Hanging does not return" in ended.errors
        assert does_not_return or "in _step\n    time.sleep(60)" in ended.errors
        assert ended.code == 130


@pytest.mark.slow
@pytest.mark.parametrize("how", [[], ["compiled"], ["overlap"]])
def test_two_interrupts_end_a_loop_whose_pool_hangs(how, forks):
    pytest.importorskip("envpool")
    with started(forks, "pool", *how) as (fork, _):
        os.kill(fork.pid, signal.SIGINT)
        first = "SIGINT: waiting for step "
        fork.wait_for(lambda: first in fork.errors)
        ended = fork.end(signal.SIGINT)
        assert "CartPole-v1 does not return" in ended.errors
        assert ended.code == 130


@pytest.mark.slow
def test_two_terminations_end_a_run_and_its_worker(forks):
    with started(forks, "run") as (fork, worker):
        assert worker != fork.pid
        os.kill(fork.pid, signal.SIGTERM)
        fork.wait_for(lambda: "SIGTERM: waiting for step 362 of " in fork.errors)
        ended = fork.end(signal.SIGTERM)
        assert "does not return" in ended.errors
        assert ended.code == 143
    # A worker ends with its parent, within a second or so.
    for _ in range(300):
        try:
            os.kill(worker, 0)
        except ProcessLookupError:
            return
        time.sleep(0.1)
    raise AssertionError(f"the worker {worker} was left")
