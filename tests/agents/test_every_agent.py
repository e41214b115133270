"""What all agents have in common, checked for each agent of the package.

`tests/test_conformance.py` checks what an agent's caller relies on; here are saved
policies, dict observations and prioritized replay.
"""

import contextlib
import dataclasses
import functools
import inspect
import re
import traceback
from unittest import mock

import numpy as np
import pytest
import tensorflow as tf

from tests import int32_handles
from tests.agents.every_agent import FAMILIES, KINDS
from tests.pairs import some_slow
from tests.policies import saved_elsewhere
from tfrl import agents, testing
from tfrl.agents import on_policy, options
from tfrl.policies import policy_saver
from tfrl.policies.exporting import formats
from tfrl.replay_buffers import TFPrioritizedReplayBuffer
from tfrl.specs import tensor_spec
from tfrl.train.loops import replay_updates
from tfrl.train.runs import columns
from tfrl.trajectories import time_step as ts
from tfrl.utils.random_numbers import seeds

OBSERVATION = {
    "place": tensor_spec.BoundedTensorSpec([], tf.int64, 0, 4),
    "speed": tf.TensorSpec([2], tf.float32),
}
# Recurrent networks have tests of their own in each of these respects.
LEARNING = [
    name
    for name, kind in KINDS.items()
    if not kind.without_weights and not name.endswith("-recurrent")
]
# The inputs of the model hold no state of a policy.
WITHOUT_STATE = [name for name in LEARNING if not name.startswith("DreamerAgent")]
WITH_TD_ERROR = [name for name in LEARNING if not KINDS[name].without_td_error]
# The collecting policies of the other agents are of the same classes; DDPG's depends on
# the noise of the calls before as well, not on the seed alone.
COLLECTING = ["DqnAgent", "PPOAgent", "Td3Agent", "SacAgent", "DiscreteSacAgent"]
BATCH_SIZE = 4
SEED = np.array([5, 6])
NORMS = ("_norm", "_change")
RECORDS = (options.TdOptions, options.AgentOptions, on_policy.OnPolicyOptions)
RNG = np.random.default_rng(0)
ARRAYS = {
    "place": RNG.integers(0, 5, size=[20]),
    "speed": RNG.normal(size=[20, 2]).astype(np.float32),
}


# The variables of int32 of each agent that was made.
MADE_OF_INT32 = {}
# The random generators without a seed of each agent that was made.
MADE_WITHOUT_SEED = {}


@contextlib.contextmanager
def generators_without_seed():
    """Yields a list that gets a line for each generator that is made without a seed."""
    found = []

    def make_generator(seed=None):
        if seed is None:
            found.append("".join(traceback.format_stack(limit=8)))
        return original(seed)

    original = seeds.make_generator
    with mock.patch.object(seeds, "make_generator", make_generator):
        yield found


@functools.cache
def made(name):
    """One agent of each kind, which the tests train as they like."""
    with (
        int32_handles.recorded() as MADE_OF_INT32[name],
        generators_without_seed() as MADE_WITHOUT_SEED[name],
    ):
        agent = KINDS[name].make(ts.time_step_spec(OBSERVATION))
        agent.collect_policy.prepare(BATCH_SIZE)
    return agent


@pytest.mark.parametrize("name", some_slow(KINDS, fast=FAMILIES))
def test_no_variable_is_of_int32_which_no_gpu_can_hold(name):
    made(name)
    assert not MADE_OF_INT32[name]


# The state of a generator is in every checkpoint of its agent.
@pytest.mark.parametrize(
    "name",
    some_slow([n for n, k in KINDS.items() if not k.without_weights], fast=FAMILIES),
)
def test_the_seed_decides_all_random_generators(name):
    made(name)
    assert not MADE_WITHOUT_SEED[name]


@pytest.mark.parametrize("name", some_slow(LEARNING, fast=FAMILIES))
def test_the_seed_decides_all_weights(name):
    one, other = (
        values(KINDS[name].make(ts.time_step_spec(OBSERVATION))) for _ in "12"
    )
    for first, second in zip(one, other, strict=True):
        np.testing.assert_array_equal(first, second)


def experience(name, seed=0):
    return testing.AgentConformance().make_experience(made(name), BATCH_SIZE, seed)


def actions(policy):
    observation = tf.nest.map_structure(tf.constant, ARRAYS)
    step = ts.transition(observation, tf.zeros([20]))
    state = policy.get_initial_state(20)
    return policy.action(step, state, tf.constant(SEED)).action.numpy()


def values(agent):
    return [variable.numpy() for variable in agent.variables()]


def test_the_registry_has_every_agent_of_the_package():
    exported = {
        value
        for name in agents.__all__
        if inspect.isclass(value := getattr(agents, name))
        and issubclass(value, agents.TFAgent)
    }
    assert {kind.agent for kind in KINDS.values()} == exported - {agents.TFAgent}


@pytest.mark.parametrize("name", some_slow(LEARNING, fast=FAMILIES))
def test_dict_observations_train_all_networks(name):
    agent = made(name)
    before = values(agent)
    # The third network of QT-Opt, and the third encoder of MR.Q, follow the second,
    # which follow the first. The last kernels of DreamerV3 begin at 0.
    many = ("QtOptAgent", "MrqAgent", "DreamerAgent")
    for _ in range(3 if name.startswith(many) else 1):
        assert np.isfinite(agent.train(experience(name)).loss)
    unmoved = [
        variable.name
        for variable, old in zip(agent.variables(), before, strict=True)
        if variable.trainable and np.array_equal(variable, old)
    ]
    assert not unmoved
    # After one update, greedy actions may all be the same.
    for variable, old in zip(agent.variables(), before, strict=True):
        variable.assign(old)


# tests/policies has fast tests of saving and converting a policy of each class.
@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """The directories of the agents' policies, by name."""
    paths = {}
    for name in LEARNING:
        policies = {"policy": made(name).policy}
        if name in COLLECTING:
            policies["collect_policy"] = made(name).collect_policy
        for key, policy in policies.items():
            path = tmp_path_factory.mktemp("saved")
            policy_saver.PolicySaver(policy).save(str(path))
            paths[name, key] = path
    return paths


@pytest.fixture(scope="module")
def elsewhere(saved, tmp_path_factory):
    """What the saved policies do in a process without tfrl, by name."""
    done = saved_elsewhere.act_by_tensorflow_alone(
        saved.values(), ARRAYS, SEED, tmp_path_factory.mktemp("alone")
    )
    return dict(zip(saved, done, strict=True))


@pytest.mark.slow
@pytest.mark.parametrize("name", LEARNING)
def test_a_saved_policy_acts_without_tfrl(name, elsewhere):
    expected = actions(made(name).policy)
    assert len(np.unique(expected)) > 1
    np.testing.assert_allclose(elsewhere[name, "policy"], expected, atol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("name", COLLECTING)
def test_a_saved_collecting_policy_explores_alike(name, elsewhere):
    expected = actions(made(name).collect_policy)
    assert not np.array_equal(expected, elsewhere[name, "policy"])
    np.testing.assert_allclose(elsewhere[name, "collect_policy"], expected, atol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("name", WITHOUT_STATE)
def test_a_greedy_policy_acts_in_tensorflow_lite(name, saved):
    model = formats.saved_to_litert(str(saved[name, "policy"]))
    _interpreter, run = saved_elsewhere.tflite_runner(model)
    found = run(**saved_elsewhere.tflite_inputs(ARRAYS))["action"]
    np.testing.assert_allclose(found, actions(made(name).policy), atol=1e-5)


def updated(name, frames, weights, start):
    """Returns the variables after an update from the values `start`."""
    agent = made(name)
    for variable, value in zip(agent.variables(), start, strict=True):
        variable.assign(value)
    agent.train(frames, weights=tf.constant(weights))
    return values(agent)


@pytest.mark.parametrize("name", some_slow(WITH_TD_ERROR, fast=FAMILIES))
def test_weights_of_zero_leave_examples_out(name):
    start = values(made(name))
    whole = experience(name)
    half = tf.nest.map_structure(
        lambda a, b: tf.concat([a[:2], b[2:]], axis=0), whole, experience(name, seed=1)
    )
    weights = [1.0, 0.5, 0.0, 0.0]
    one, other = (updated(name, frames, weights, start) for frames in (whole, half))
    for expected, found in zip(one, other, strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-7)
    counted = updated(name, half, [1.0, 0.5, 1.0, 1.0], start)
    assert any(np.any(a != b) for a, b in zip(one, counted, strict=True))


@pytest.mark.parametrize("name", some_slow(WITH_TD_ERROR, fast=FAMILIES))
def test_weights_scale_the_loss(name):
    plain, double = (
        made(name).loss(experience(name), weights=tf.fill([BATCH_SIZE], weight)).loss
        for weight in (1.0, 2.0)
    )
    np.testing.assert_allclose(double, 2 * plain, rtol=1e-5)


@pytest.mark.parametrize("name", some_slow(WITH_TD_ERROR, fast=FAMILIES))
def test_td_errors_become_priorities(name):
    agent = made(name)
    num_steps = agent.train_sequence_length
    replay_buffer = TFPrioritizedReplayBuffer(agent.collect_data_spec, BATCH_SIZE, 8)
    frames = experience(name)
    for t in range(num_steps):
        replay_buffer.add_batch(tf.nest.map_structure(lambda x, t=t: x[:, t], frames))
    sample, info = replay_buffer.sample(BATCH_SIZE, num_steps, seed=3)
    errors = agent.train(sample, weights=info.weights).extra.td_error
    assert errors.shape == (BATCH_SIZE,)
    sizes, keys = np.abs(errors.numpy()), info.keys.numpy()
    replay_buffer.update_priorities(keys, sizes)
    # A window that is drawn twice gets the larger one.
    largest = [sizes[keys == key].max() for key in keys]
    np.testing.assert_allclose(
        replay_buffer.get_priorities(keys),
        (np.array(largest) + replay_buffer.epsilon) ** replay_buffer.priority_exponent,
        rtol=1e-5,
    )


@pytest.mark.parametrize(
    "name",
    some_slow(
        [name for name, kind in KINDS.items() if kind.without_td_error], fast=FAMILIES
    ),
)
def test_agents_without_td_errors_say_so(name):
    info = made(name).loss(experience(name))
    with pytest.raises(ValueError, match=f"{type(made(name)).__name__} returns nei"):
        replay_updates.priorities_of(info, made(name))


@pytest.mark.parametrize("name", some_slow(LEARNING, fast=FAMILIES))
def test_every_number_for_the_log_has_a_column(name):
    agent = made(name)
    weights = [f"{x}{end}" for x in agent.weights_by_name() for end in NORMS]
    names = [*agent.diagnose(experience(name)), *weights]
    assert [name for name in names if columns.find(name) is None] == []


def explained(agent):
    """The constructor's arguments that its docstring, or what it names, explains."""
    text = inspect.getdoc(agent.__init__)
    names = set(re.findall(r"^  \**(\w+): ", text, re.MULTILINE))
    for record in RECORDS:
        if f"`{record.__name__}`" in text:
            names |= {field.name for field in dataclasses.fields(record)}
    base = agent.__mro__[1].__name__
    says_so = rf"`{base}`(; see its constructor for|.* explain) the arguments"
    if re.search(says_so, text, re.DOTALL):
        names |= inspect.signature(agent.__mro__[1]).parameters.keys()
    return names


@pytest.mark.parametrize("agent", sorted({k.agent for k in KINDS.values()}, key=str))
def test_every_argument_is_explained(agent):
    assert inspect.signature(agent).parameters.keys() <= explained(agent)
