"""TensorFlow's warnings of retracing, which it logs."""

import logging
import types

import keras
import pytest
import tensorflow as tf

import tfrl
from tfrl import datasets, train
from tfrl.agents.dqn import dqn_agent
from tfrl.compilation import fast_function, trace_counts
from tfrl.environments import native
from tfrl.metrics import tf_metric
from tfrl.networks import q_network
from tfrl.policies import random_tf_policy
from tfrl.replay_buffers import tf_uniform_replay_buffer
from tfrl.train.loops import diagnostics
from tfrl.trajectories import time_step as ts
from tfrl.trajectories import trajectory


@pytest.fixture
def warned():
    messages = []

    class Handler(logging.Handler):
        def emit(self, record):
            if "retracing" in record.getMessage():
                messages.append(record.getMessage())

    handler = Handler()
    tf.get_logger().addHandler(handler)
    yield messages
    tf.get_logger().removeHandler(handler)


def plain(method):
    return tf.function(trace_counts.of_one_object(method), autograph=False)


@pytest.mark.parametrize("traced", [plain, fast_function.fast_function])
def test_methods_of_several_objects_are_counted_on_their_own(traced, warned):
    class Adder:
        def add(self, x):
            return x + 1

    adders = [Adder() for _ in range(7)]
    assert [int(traced(adder.add)(tf.constant(1))) for adder in adders] == [2] * 7
    assert warned == []


@pytest.mark.parametrize("traced", [plain, fast_function.fast_function])
def test_a_method_that_is_traced_for_every_shape_is_warned_of(traced, warned):
    class Adder:
        def add(self, x):
            return x + 1

    add = traced(Adder().add)
    for size in range(7):
        add(tf.zeros([size]))
    assert any("Adder.add" in message for message in warned)


def test_several_buffers_are_filled_without_a_warning(warned):
    spec = tf.TensorSpec([], tf.int32)
    frame = trajectory.Trajectory(*[tf.constant(0)] * 3, (), *[tf.constant(0)] * 3)
    frames = tf.data.Dataset.from_tensors(frame).repeat(3)
    for _ in range(7):
        buffer = tf_uniform_replay_buffer.TFUniformReplayBuffer(
            tf.nest.map_structure(lambda _: spec, frame), batch_size=1, max_length=3
        )
        assert datasets.frames.fill(buffer, frames) == 3
    assert warned == []


def test_functions_keep_their_names_and_others_are_not_wrapped():
    class Adder:
        def add(self, x):
            return x

    assert trace_counts.of_one_object(Adder().add).__name__ == "add"
    assert trace_counts.of_one_object(plain) is plain


def test_several_metrics_and_policies_are_not_warned_of(warned):
    class Metric(tf_metric.TFStepMetric):
        def call(self, trajectory):
            return trajectory

        def result(self):
            return tf.zeros([])

        def reset(self):
            pass

    class Policy(random_tf_policy.RandomTFPolicy):
        pass

    spec = tf.TensorSpec([2], tf.float32)
    time_step = ts.restart(tf.zeros([1, 2]), batch_size=1)
    for _ in range(7):
        Metric("m")(tf.zeros([1]))
        policy = Policy(ts.time_step_spec(spec), spec)
        for _ in range(9):
            policy.action(time_step)
    assert warned == []


def test_measurements_of_several_runs_are_not_warned_of(warned):
    agent = types.SimpleNamespace(
        diagnose=lambda batch: {"loss": tf.constant(1.0)},
        weights_by_name=dict,
        train_step_counter=0,
    )
    for _ in range(7):
        made = diagnostics.Diagnostics(agent, can_draw=lambda: False, draw=list)
        assert made.measure() == {"loss": 1.0}
    assert warned == []


@pytest.mark.slow
def test_predictions_of_several_algorithms_are_not_warned_of(warned, tmp_path):
    for _ in range(6):
        made = tfrl.PPO("Pendulum-v1", fc_layer_params=(4,), jit_compile=False)
        made.predict([0.0, 1.0, 0.0])
    made.record(tmp_path / "episode.tfrecord", 1)
    assert warned == []


@pytest.mark.slow
def test_several_loops_in_a_process_are_not_warned_of(warned):
    class Loop(train.OffPolicyLoop):
        """Methods of its own, which no other test has traced."""

        def _do_iterations(self, *args):
            return super()._do_iterations(*args)

        def _collect_initially(self, *args):
            return super()._collect_initially(*args)

        def iterate(self, time_step, policy_state):
            # What is traced plays no part here.
            return time_step, policy_state, tf.zeros([])

    env = native.load("CartPole-v1", batch_size=1)
    agent = dqn_agent.DqnAgent(
        env.time_step_spec(),
        env.action_spec(),
        q_network.QNetwork(
            env.observation_spec(), env.action_spec(), fc_layer_params=()
        ),
        keras.optimizers.SGD(),
    )
    buffer = tf_uniform_replay_buffer.TFUniformReplayBuffer(
        agent.collect_data_spec, batch_size=1, max_length=8
    )
    for _ in range(5):
        buffer.clear()
        loop = Loop(
            env,
            agent,
            buffer,
            initial_collect_steps=4,
            sample_batch_size=1,
            jit_compile=False,
        )
        loop.run(1)
    assert warned == []
