"""Only named operations of a plain loop fall back from a GPU to the CPU.

And few tensors of an iteration go from the GPU to the host; see `gpu_walk`.
"""

import json
import pathlib

import keras
import pytest
import tensorflow as tf

from tests.train import gpu_walk
from tests.train.gpu_walk import falling_back
from tfrl import train
from tfrl.agents import DqnAgent, ReinforceAgent
from tfrl.drivers import dynamic_step_driver
from tfrl.environments import native, suite_gym, tf_py_environment
from tfrl.eval import evaluate
from tfrl.networks import ActorDistributionNetwork, QNetwork, ValueNetwork
from tfrl.replay_buffers import TFPrioritizedReplayBuffer, TFUniformReplayBuffer
from tfrl.utils import common

SCRIPT = pathlib.Path(__file__).parent / "scripts" / "crossings.py"
ENVIRONMENT_CALL = {"PyFunc": set()}
# The texts of assertions.
MESSAGES = {"Const": {"string"}}
# A tf.data pipeline runs on the host; the functions that it maps are walked through.
PIPELINE = {
    name: set()
    for name in ("TensorDataset", "RepeatDataset", "MapDataset", "FilterDataset")
}


pytestmark = pytest.mark.skipif(
    all(kernel.device_type != "GPU" for kernel in gpu_walk.kernels_of("MatMul")),
    reason="this build of TensorFlow registers no GPU kernels",
)


@pytest.fixture(scope="module")
def environment():
    return tf_py_environment.TFPyEnvironment(suite_gym.load("CartPole-v1"))


@pytest.fixture(scope="module")
def dqn_agent(environment):
    agent = DqnAgent(
        environment.time_step_spec(),
        environment.action_spec(),
        q_network=QNetwork(
            environment.observation_spec(),
            environment.action_spec(),
            fc_layer_params=(),
        ),
        optimizer=keras.optimizers.Adam(1e-3),
        n_step_update=2,
    )
    agent.initialize()
    return agent


def make_buffer(agent, kind=TFUniformReplayBuffer, batch_size=1):
    return kind(agent.collect_data_spec, batch_size=batch_size, max_length=100)


def trace_of(loop):
    while not loop._start():
        pass
    position = loop._position.get()
    one = tf.constant(1, tf.int64)
    return loop._call.get_concrete_function(position, one, loop._zero_loss)


@pytest.mark.parametrize(
    ("kind", "sampling"),
    [
        (TFPrioritizedReplayBuffer, "variables"),
        pytest.param(TFUniformReplayBuffer, "dataset", marks=pytest.mark.slow),
        pytest.param(TFUniformReplayBuffer, "variables", marks=pytest.mark.slow),
        pytest.param(TFPrioritizedReplayBuffer, "dataset", marks=pytest.mark.slow),
    ],
)
def test_dqn(environment, dqn_agent, kind, sampling):
    loop = train.OffPolicyLoop(
        environment,
        dqn_agent,
        make_buffer(dqn_agent, kind),
        initial_collect_steps=10,
        sampling=sampling,
    )
    found = falling_back(trace_of(loop))
    assert found.pop("Const", {"string"}) == {"string"}
    assert found == ENVIRONMENT_CALL


@pytest.mark.slow
def test_dqn_on_a_native_environment(dqn_agent):
    loop = train.OffPolicyLoop(
        native.load("CartPole-v1", batch_size=2),
        dqn_agent,
        make_buffer(dqn_agent, batch_size=2),
        initial_collect_steps=10,
        sampling="variables",
    )
    assert falling_back(trace_of(loop)) == MESSAGES


def test_the_pipeline_of_a_buffer(dqn_agent):
    buffer = make_buffer(dqn_agent)
    trace = tf.function(
        lambda: tf.data.experimental.to_variant(buffer.as_dataset(8, 3)),
        autograph=False,
    )
    assert falling_back(trace.get_concrete_function()) == {**MESSAGES, **PIPELINE}


@pytest.mark.slow
@pytest.mark.parametrize(
    "has_baseline", [True, pytest.param(False, marks=pytest.mark.slow)]
)
def test_reinforce(environment, has_baseline):
    value_network = ValueNetwork(environment.observation_spec(), fc_layer_params=())
    agent = ReinforceAgent(
        environment.time_step_spec(),
        environment.action_spec(),
        actor_network=ActorDistributionNetwork(
            environment.observation_spec(),
            environment.action_spec(),
            fc_layer_params=(),
        ),
        value_network=value_network if has_baseline else None,
        optimizer=keras.optimizers.Adam(1e-3),
        entropy_regularization=0.1,
    )
    agent.initialize()
    loop = train.EpisodicLoop(environment, agent, make_buffer(agent))
    assert falling_back(trace_of(loop)) == {**ENVIRONMENT_CALL, **MESSAGES}


def test_evaluation(environment, dqn_agent):
    evaluator = evaluate.Evaluator(environment, dqn_agent.policy, 3, seed=0)
    begin = evaluator._begin.get_concrete_function()
    assert falling_back(begin) == ENVIRONMENT_CALL
    steps = evaluator._evaluate.get_concrete_function(
        evaluator._begin(), evaluator._seed, tf.constant(1)
    )
    assert falling_back(steps) == ENVIRONMENT_CALL


def test_the_tutorials_loop(environment, dqn_agent):
    buffer = make_buffer(dqn_agent)
    driver = dynamic_step_driver.DynamicStepDriver(
        environment, dqn_agent.collect_policy, [buffer.add_batch], num_steps=1
    )
    collect = common.function(lambda time_step: driver.run(time_step)[0])
    trace = collect.get_concrete_function(environment.current_time_step())
    assert falling_back(trace) == ENVIRONMENT_CALL
    for _ in range(3):
        driver.run()
    experience, _ = next(iter(buffer.as_dataset(4, 3)))
    train_step = common.function(dqn_agent.train)
    assert falling_back(train_step.get_concrete_function(experience)) == {}


def test_an_operation_without_a_kernel_is_found():
    words = tf.Variable(tf.zeros([4], tf.int32))
    trace = tf.function(
        lambda: tf.cond(
            words[0] > 0, lambda: tf.gather(words, [1]), lambda: tf.constant([0])
        ),
        autograph=False,
    )
    assert falling_back(trace.get_concrete_function()) == {"ResourceGather": {"int32"}}


def concrete(function, *arguments):
    traced = tf.function(function, autograph=False)
    return traced.get_concrete_function(*arguments)


def sources(trace):
    """What computes the tensors that go to the host, and how often they go."""
    return [(found.source, found.times) for found in gpu_walk.crossings(trace)]


def repeated(body, start, times=3):
    return concrete(
        lambda: tf.while_loop(
            lambda i, _: i < times, lambda i, x: (i + 1, body(i, x)), (0, start())
        )
    )


def test_what_a_loop_keeps_on_the_gpu_does_not_cross():
    trace = repeated(lambda i, x: x[i : i + 2] * 2.0 + x[:2], lambda: tf.ones([2]))
    assert sources(trace) == []


@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_an_index_on_the_gpu_crosses_at_each_turn(dtype):
    trace = repeated(
        lambda i, x: x + tf.ones([9])[tf.cast(tf.reduce_sum(x), dtype)],
        lambda: tf.zeros([2]),
    )
    # One tensor serves the positions from and to which an int32 slice goes.
    expected = {"int32": [("Cast", 3)], "int64": [("Pack", 3)] * 3}
    assert sources(trace) == expected[dtype]


def test_a_tensor_crosses_once_for_all_who_need_it():
    def body(i, x):
        sizes = [tf.cast(tf.reduce_max(x), tf.int32) + size for size in (1, 2)]
        return x + sum(tf.reduce_sum(tf.fill([size], 1.0)) for size in sizes)

    assert sources(repeated(body, lambda: tf.ones([2]))) == [("Cast", 3)]


def test_conditions_and_assertions_cross():
    def body(i, x):
        tf.raw_ops.Assert(condition=tf.reduce_any(x > 5.0), data=["large"])
        return tf.cond(tf.reduce_all(x > 0.0), lambda: x, lambda: -x)

    found = sources(repeated(body, lambda: tf.ones([2])))
    assert sorted(found) == [("All", 3), ("Any", 3)]


def test_an_operation_on_the_host_needs_its_inputs_there():
    def body(i, x):
        with tf.device("CPU:0"):
            return tf.identity(x) + 1.0

    trace = repeated(body, lambda: tf.ones([2]))
    assert sources(trace) == []
    (found,) = gpu_walk.crossings(trace, host="CPU:0")
    assert (found.user, found.times) == ("AddV2", 3)


def test_what_is_outside_of_all_loops_does_not_count():
    trace = concrete(lambda: tf.fill([tf.cast(tf.random.uniform([]), tf.int32)], 1))
    assert sources(trace) == []


@pytest.mark.parametrize("op", sorted(gpu_walk.WORKING_ON_HOST))
def test_what_works_on_the_host_is_registered_for_a_gpu(op):
    name, on_host = gpu_walk.WORKING_ON_HOST[op]
    registered = {
        tf.as_dtype(dtype).name
        for kernel in gpu_walk.kernels_of(op)
        if kernel.device_type == "GPU"
        for constraint in kernel.constraint
        if constraint.name == name
        for dtype in constraint.allowed_values.list.type
    }
    assert "float32" in registered
    assert registered & on_host
    assert not {"float32", "float64"} & on_host


@pytest.mark.parametrize(("dtype", "found"), [(tf.uint8, True), (tf.float32, False)])
def test_a_scatter_of_integers_works_on_the_host(dtype, found):
    variable = tf.Variable(tf.zeros([4, 2], dtype))
    update = tf.IndexedSlices(tf.ones([1, 2], dtype), tf.constant([3]))
    trace = concrete(lambda: variable.scatter_update(update))
    expected = {"ResourceScatterUpdate": {dtype.name, "int32"}} if found else {}
    assert gpu_walk.working_on_host(trace) == expected


@pytest.fixture(scope="module")
def loops(run):
    """What crosses in the loops of the script, by their names."""
    ended = run(str(SCRIPT))
    assert ended.code == 0, ended.errors[-3000:]
    return json.loads(ended.output.splitlines()[-1])


# The host adds up the losses, and is told where in the buffer each frame goes.
MOST = {
    "dqn": 2,
    "dqn of images": 2,
    "dqn, four steps and updates": 5,
    "dqn prioritized": 2,
    "sac": 2,
    "ppo": 1,
    # TensorFlow's cross-entropy checks a shape that is not known when it is traced.
    "reinforce": 3,
    "native dqn": 1,
    "native ppo": 0,
}


@pytest.mark.slow
@pytest.mark.parametrize("name", MOST)
def test_few_tensors_of_an_iteration_cross(loops, name):
    found = loops[name]["others"]
    assert sum(times for *_, times in found) <= MOST[name], found
