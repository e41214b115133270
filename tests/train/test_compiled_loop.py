"""Compiled loops give the results of plain ones; their errors."""

import functools
import re

import keras
import numpy as np
import pytest
import tensorflow as tf

from tests.pairs import some_slow
from tfrl import testing
from tfrl.agents.dqn import dqn_agent
from tfrl.environments import (
    batched_py_environment,
    native,
    parallel_py_environment,
    suite_gym,
    tf_py_environment,
)
from tfrl.networks import q_network, q_rnn_network
from tfrl.replay_buffers import tf_prioritized_replay_buffer, tf_uniform_replay_buffer
from tfrl.train.loops import off_policy_loop
from tfrl.trajectories import time_step as ts

BUFFERS = {
    "uniform": tf_uniform_replay_buffer.TFUniformReplayBuffer,
    "prioritized": tf_prioritized_replay_buffer.TFPrioritizedReplayBuffer,
}


def python_environment(*corridors):
    if len(corridors) == 1:
        return tf_py_environment.TFPyEnvironment(corridors[0])
    return tf_py_environment.TFPyEnvironment(
        batched_py_environment.BatchedPyEnvironment(corridors)
    )


def cart_poles(batch_size=1):
    return native.load("CartPole-v1", batch_size, seed=5)


def make_network(environment, is_recurrent):
    specs = environment.observation_spec(), environment.action_spec()
    if not is_recurrent:
        return q_network.QNetwork(*specs, fc_layer_params=(8,), seed=3)
    return q_rnn_network.QRnnNetwork(
        *specs,
        input_fc_layer_params=(8,),
        lstm_size=(6,),
        output_fc_layer_params=(8,),
        seed=3,
    )


def make_loop(
    jit_compile=True,
    environment=None,
    agent_class=dqn_agent.DqnAgent,
    replay="uniform",
    max_length=500,
    is_recurrent=False,
    n_step=1,
    **kwargs,
):
    environment = environment or cart_poles()
    agent = agent_class(
        environment.time_step_spec(),
        environment.action_spec(),
        q_network=make_network(environment, is_recurrent),
        optimizer=keras.optimizers.Adam(1e-2),
        epsilon_greedy=0.3,
        gamma=0.9,
        n_step_update=n_step,
        target_update_period=7,
        seed=3,
    )
    agent.initialize()
    replay_buffer = BUFFERS[replay](
        agent.collect_data_spec, environment.batch_size, max_length, seed=3
    )
    arguments = {
        "initial_collect_steps": 20 * environment.batch_size,
        "sample_batch_size": 8,
        "sampling": "variables",
        **kwargs,
    }
    loop = off_policy_loop.OffPolicyLoop(
        environment, agent, replay_buffer, seed=3, jit_compile=jit_compile, **arguments
    )
    return loop, replay_buffer


def state(loop):
    """Weights and counters."""
    items = loop.checkpoint_items()
    variables = [items[name] for name in ("seed", "iteration", "step")]
    return [variable.numpy() for variable in [*loop.agent.variables(), *variables]]


def frames(replay_buffer):
    return [leaf.numpy() for leaf in tf.nest.flatten(replay_buffer.gather_all())]


def assert_same(some, others, **tolerance):
    assert len(some) == len(others) > 5
    for one, other in zip(some, others, strict=True):
        if tolerance:
            np.testing.assert_allclose(one, other, **tolerance)
        else:
            np.testing.assert_array_equal(one, other)


# --- The same as a plain loop.

CASES = {
    "native": {},
    "native, three, two steps, two updates": {
        "environment": lambda: cart_poles(3),
        "collect_steps_per_iteration": 2,
        "train_steps_per_iteration": 2,
        "agent_class": dqn_agent.DdqnAgent,
        "max_length": 50,
    },
    "native, prioritized": {
        "environment": lambda: cart_poles(3),
        "replay": "prioritized",
        "n_step": 2,
    },
    "native, prioritized, two updates": {
        "replay": "prioritized",
        "train_steps_per_iteration": 2,
    },
    "native, recurrent": {
        "environment": lambda: cart_poles(2),
        "is_recurrent": True,
        "sequence_length": 3,
    },
    "Python": {
        "environment": lambda: python_environment(testing.CorridorEnvironment())
    },
    "Python, a batch": {
        "environment": lambda: python_environment(
            *(testing.CorridorEnvironment() for _ in range(3))
        ),
        "collect_steps_per_iteration": 2,
    },
}


class Ran:
    """A loop after 50 iterations, with what it and its buffer held then."""

    def __init__(self, jit_compile, environment, **arguments):
        self.loop, self.replay_buffer = make_loop(jit_compile, environment, **arguments)
        self.loop.run(1)
        self.info = self.loop.run(49)
        self.state = state(self.loop)
        self.frames = frames(self.replay_buffer)
        assert self.loop.trace_count() == 1


def ran(case, jit_compile, **kwargs):
    arguments = {**CASES[case], **kwargs}
    make_environment = arguments.pop("environment", cart_poles)
    return Ran(jit_compile, make_environment(), **arguments)


def assert_same_runs(one, other):
    assert one.info.episodes > 0
    assert one.info[:4] == other.info[:4]
    np.testing.assert_allclose(one.info[4:], other.info[4:], rtol=1e-4)
    assert_same(one.state, other.state, rtol=1e-4, atol=1e-5)
    assert_same(one.frames, other.frames, rtol=1e-4, atol=1e-5)


NATIVE = "native, three, two steps, two updates"
# These take longest, or show what others show, too.
SLOW = (
    "native",
    "native, three, two steps, two updates",
    "native, prioritized",
    "native, prioritized, two updates",
    "native, recurrent",
    "Python, a batch",
)


@pytest.fixture(scope="module")
def native_loop():
    return ran(NATIVE, jit_compile=True)


class OffsetLoss(dqn_agent.DqnAgent):
    """Adds a variable to the loss, and nothing to the gradients."""

    def __init__(self, *arguments, **kwargs):
        super().__init__(*arguments, **kwargs)
        self.offset = tf.Variable(0.0)

    def _td_error(self, *arguments):
        loss, error = super()._td_error(*arguments)
        return loss + self.offset, error


@pytest.fixture(scope="module")
def python_loop():
    """A corridor, and the loop in it."""
    corridor = testing.CorridorEnvironment()
    return corridor, Ran(True, python_environment(corridor), agent_class=OffsetLoss)


@pytest.mark.parametrize("case", some_slow(CASES, slow=SLOW))
def test_the_results_are_those_of_a_plain_loop(case, request):
    arguments = {}
    if case == NATIVE:
        compiled = request.getfixturevalue("native_loop")
    elif case == "Python":
        compiled = request.getfixturevalue("python_loop")[1]
        arguments = {"agent_class": OffsetLoss}
    else:
        compiled = ran(case, True)
    assert_same_runs(ran(case, False, **arguments), compiled)


# `test_parallel_py_environment.py` compares them in a driver.
@pytest.mark.slow
@pytest.mark.parametrize("jit_compile", [False, True])
def test_environments_in_processes_of_their_own_are_those_in_this_one(jit_compile):
    runs = []
    for is_parallel in (False, True):
        load = functools.partial(suite_gym.load, "CartPole-v1")
        environment = tf_py_environment.TFPyEnvironment(
            parallel_py_environment.ParallelPyEnvironment([load] * 2)
            if is_parallel
            else batched_py_environment.BatchedPyEnvironment([load(), load()])
        )
        environment.seed(5)
        runs.append(Ran(jit_compile, environment))
        environment.close()
    assert_same_runs(*runs)


# --- Calls, checkpoints, and the program itself.


def save(loop, directory, name):
    checkpoint = tf.train.Checkpoint(**loop.checkpoint_items())
    return checkpoint.write(str(directory / name))


def restore(loop, path):
    tf.train.Checkpoint(**loop.checkpoint_items()).read(path)


@pytest.mark.slow
def test_neither_calls_nor_checkpoints_change_the_results(native_loop, tmp_path):
    loop, replay_buffer = native_loop.loop, native_loop.replay_buffer
    start = save(loop, tmp_path, "start")
    loop.run(11)
    middle = save(loop, tmp_path, "middle")
    info = loop.run(25)
    expected = [*state(loop), *frames(replay_buffer)]

    restore(loop, start)
    assert loop.run(36)[:5] == info[:5]
    assert_same([*state(loop), *frames(replay_buffer)], expected)
    assert loop.trace_count() == 1

    restore(loop, middle)
    assert loop.run(25) == info
    assert_same([*state(loop), *frames(replay_buffer)], expected)


def test_no_iterations_change_nothing(native_loop):
    loop, replay_buffer = native_loop.loop, native_loop.replay_buffer
    before = [*state(loop), *frames(replay_buffer)]
    assert np.isnan(loop.run(0).loss)
    assert_same([*state(loop), *frames(replay_buffer)], before)


def test_the_program_copies_no_buffer(native_loop):
    loop, replay_buffer = native_loop.loop, native_loop.replay_buffer
    call = loop._call.experimental_get_compiler_ir(
        loop._position.get(), tf.constant(1, tf.int64), loop._zero_loss
    )
    (table,) = replay_buffer._table.variables()
    assert table.shape[0] == 3 * 51
    program = call(stage="optimized_hlo")
    words = table.shape[1]
    assert f"u32[153,{words}]" in program
    assert not re.findall(rf"= u32\[(?:153|51,3),{words}\]\S* copy\(", program)


# --- Errors.


@pytest.mark.parametrize(
    "error", [RuntimeError("the corridor collapsed"), KeyboardInterrupt()], ids=type
)
def test_the_environments_own_exception_comes_out_and_the_loop_can_go_on(
    python_loop, error
):
    corridor, done_before = python_loop
    loop, replay_buffer = done_before.loop, done_before.replay_buffer
    before, frames_before = loop.info(), int(replay_buffer.num_frames())
    corridor.errors[corridor.num_steps + 8] = error
    with pytest.raises(type(error)) as raised:
        loop.run(50)
    assert raised.value is error
    # What was done before remains, and ends with a truncation of the episode.
    done = loop.info().train_steps - before.train_steps
    assert 7 < done < 15
    assert int(replay_buffer.num_frames()) == frames_before + done
    loop.run(3)
    frames = tf.nest.map_structure(
        lambda t: t[0, frames_before + done - 1 :], replay_buffer.gather_all()
    )
    first, mid, last = ts.StepType.FIRST, ts.StepType.MID, ts.StepType.LAST
    np.testing.assert_array_equal(frames.step_type[1:3], [first, mid])
    np.testing.assert_array_equal(frames.next_step_type[:2], [last, mid])
    assert (frames.reward[0], frames.discount[0]) == (0, 1)
    assert frames.observation[1] == 0
    assert all(np.isfinite(array).all() for array in state(loop))
    assert loop.trace_count() == 1


def test_a_loss_that_is_not_finite_is_an_error_after_the_call(python_loop, tmp_path):
    corridor, loop = python_loop[0], python_loop[1].loop
    path = save(loop, tmp_path, "good")
    corridor.step_reward = np.float32(3e38)
    with pytest.raises(
        tf.errors.InvalidArgumentError,
        match=r"experience: a OffsetLoss loss in the last \d+ iterations was not finite"
        r".*resume from a checkpoint",
    ):
        loop.run(50)
    corridor.step_reward = -0.1
    restore(loop, path)
    assert np.isfinite(loop.run(5).loss)


def test_weights_that_are_lost_with_a_finite_loss_are_an_error_after_the_call(
    python_loop, tmp_path
):
    loop = python_loop[1].loop
    path = save(loop, tmp_path, "good")
    optimizer = loop.agent._optimizer.optimizer
    rate = float(optimizer.learning_rate)
    optimizer.learning_rate = np.inf
    count = len(loop.agent.variables())
    # The loss of one iteration is that before its update.
    with pytest.raises(
        tf.errors.InvalidArgumentError,
        match=rf"[1-9]\d* of the agent's {count} variables hold NaN or infinity now, "
        "so the weights are lost.*resume from a checkpoint",
    ):
        loop.run(1)
    optimizer.learning_rate = rate
    restore(loop, path)
    assert np.isfinite(loop.run(1).loss)


def test_an_infinite_loss_with_finite_gradients_does_not_lose_the_weights(python_loop):
    loop = python_loop[1].loop
    loop.agent.offset.assign(np.inf)
    with pytest.raises(
        tf.errors.InvalidArgumentError, match="the weights are still finite, but were t"
    ):
        loop.run(5)
    loop.agent.offset.assign(0.0)
    assert all(np.isfinite(array).all() for array in state(loop))


def test_a_pipeline_cannot_be_compiled():
    with pytest.raises(ValueError, match=r"sampling: got 'dataset' with jit_compile"):
        make_loop(sampling="dataset")


@pytest.mark.parametrize("jit_compile", [False, True])
def test_a_buffer_with_too_few_frames_for_a_sample_is_an_error(jit_compile):
    environment = python_environment(testing.CorridorEnvironment())
    loop, replay_buffer = make_loop(jit_compile, environment, n_step=4)
    replay_buffer.add_batch(
        tf.nest.map_structure(
            lambda spec: tf.zeros([1, *spec.shape], spec.dtype), replay_buffer.data_spec
        )
    )
    with pytest.raises(
        ValueError,
        match=r"replay_buffer: got 1 frame\(s\) of each environment, and 1 more come "
        "before the first sample, expected 5.*clear it",
    ):
        loop.run(1)
    replay_buffer.clear()
    if not jit_compile:  # It is the same there, and takes longer.
        assert loop.run(1).train_steps == 1
