"""Only named operations of a plain loop fall back from a GPU to the CPU.

TensorFlow's Linux wheel registers its GPU kernels on a machine without a GPU, too. So a
walk over the operations of a traced function shows which of them have one.
"""

import collections
import functools

import keras
import pytest
import tensorflow as tf
from tensorflow.python.framework import kernels

from tfrl import train
from tfrl.agents import DqnAgent, ReinforceAgent
from tfrl.drivers import dynamic_step_driver
from tfrl.environments import native, suite_gym, tf_py_environment
from tfrl.eval import evaluate
from tfrl.networks import ActorDistributionNetwork, QNetwork, ValueNetwork
from tfrl.replay_buffers import TFPrioritizedReplayBuffer, TFUniformReplayBuffer
from tfrl.utils import common

ENVIRONMENT_CALL = {"PyFunc": set()}
# The texts of assertions.
MESSAGES = {"Const": {"string"}}
# A tf.data pipeline runs on the host; the functions that it maps are walked through.
PIPELINE = {
    name: set()
    for name in ("TensorDataset", "RepeatDataset", "MapDataset", "FilterDataset")
}


@functools.cache
def kernels_of(op):
    return tuple(kernels.get_registered_kernels_for_op(op).kernel)


pytestmark = pytest.mark.skipif(
    all(kernel.device_type != "GPU" for kernel in kernels_of("MatMul")),
    reason="this build of TensorFlow registers no GPU kernels",
)


def falling_back(trace):
    """The operations without a kernel for a GPU, and the dtypes of each.

    Args:
      trace: A concrete function; the functions that it calls are looked through, too.
    """
    graph = trace.graph.as_graph_def()
    functions = {function.signature.name for function in graph.library.function}
    nodes = [*graph.node, *(n for f in graph.library.function for n in f.node_def)]
    found = collections.defaultdict(set)
    for node in nodes:
        if node.op not in functions and not has_gpu_kernel(node):
            found[node.op] |= dtypes(node)
    return dict(found)


def has_gpu_kernel(node):
    return any(
        kernel.device_type in ("GPU", "DEFAULT")
        and all(allows(constraint, node) for constraint in kernel.constraint)
        for kernel in kernels_of(node.op)
    )


def allows(constraint, node):
    value = node.attr[constraint.name]
    given = list(value.list.type) or [value.type]
    return set(given) <= set(constraint.allowed_values.list.type)


def dtypes(node):
    return {
        tf.as_dtype(value.type).name
        for name, value in node.attr.items()
        if value.type and not name.startswith("_")
    }


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


@pytest.mark.parametrize("sampling", ["variables", "dataset"])
@pytest.mark.parametrize("kind", [TFUniformReplayBuffer, TFPrioritizedReplayBuffer])
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


@pytest.mark.parametrize("has_baseline", [False, True])
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
