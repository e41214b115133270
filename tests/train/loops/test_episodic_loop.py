import keras
import numpy as np
import pytest
import tensorflow as tf

from tests.train import used_loops
from tfrl import testing
from tfrl.agents.reinforce import reinforce_agent
from tfrl.environments import (
    batched_py_environment,
    native,
    tf_environment,
    tf_py_environment,
    wrappers,
)
from tfrl.networks import actor_distribution_network, value_network
from tfrl.replay_buffers import tf_uniform_replay_buffer
from tfrl.train.loops import episodic_loop
from tfrl.trajectories import time_step as ts


def make_loop(environment=None, seed=1, max_length=100, agent_options=(), **kwargs):
    environment = environment or testing.RecallEnvironment()
    if not isinstance(environment, tf_environment.TFEnvironment):
        environment = tf_py_environment.TFPyEnvironment(environment)
    actor = actor_distribution_network.ActorDistributionNetwork(
        environment.observation_spec(),
        environment.action_spec(),
        fc_layer_params=(),
        seed=seed,
    )
    agent = reinforce_agent.ReinforceAgent(
        environment.time_step_spec(),
        environment.action_spec(),
        actor_network=actor,
        optimizer=keras.optimizers.Adam(3e-2),
        seed=seed,
        **dict(agent_options),
    )
    agent.initialize()
    replay_buffer = tf_uniform_replay_buffer.TFUniformReplayBuffer(
        agent.collect_data_spec, environment.batch_size, max_length
    )
    return episodic_loop.EpisodicLoop(
        environment, agent, replay_buffer, seed=seed, **kwargs
    )


pool = used_loops.Pool(make_loop)


def take_loop():
    """A loop as `make_loop()` builds it, which other tests may have used."""
    return pool.take(testing.RecallEnvironment())


SEEN = []


def build_spied_loop(environment, **kwargs):
    """A loop that appends the trajectories its agent is trained with to `SEEN`."""
    loop = make_loop(environment, **kwargs)
    train = loop.agent.train

    def remember(*leaves):
        SEEN.append(tf.nest.pack_sequence_as(loop.agent.collect_data_spec, leaves))
        return np.int64(0)

    def spy(experience, weights=None):
        called = tf.numpy_function(remember, tf.nest.flatten(experience), tf.int64)
        with tf.control_dependencies([called]):
            return train(experience, weights)

    loop.agent.train = spy
    return loop


spied_pool = used_loops.Pool(build_spied_loop)


def take_spied_loop(environment, **kwargs):
    """Such a loop, which other tests may have used, and the empty list."""
    SEEN.clear()
    return spied_pool.take(environment, **kwargs), SEEN


def test_an_update_takes_whole_fresh_episodes():
    loop, seen = take_spied_loop(
        testing.RecallEnvironment(), collect_episodes_per_iteration=2
    )
    info = loop.run(3)
    assert info.episodes == 6
    assert info.train_steps == 3
    assert len(seen) == 3
    for frames in seen:
        # Two episodes of three steps, and the reset between them.
        np.testing.assert_array_equal(frames.step_type, [[0, 1, 1, 2, 0, 1, 1]])
        np.testing.assert_array_equal(frames.next_step_type, [[1, 1, 2, 0, 1, 1, 2]])


def test_every_member_gives_its_first_episodes_and_no_more():
    """A short-lived member would otherwise give more episodes than its share."""
    environment = batched_py_environment.BatchedPyEnvironment(
        [testing.RecallEnvironment(length=2), testing.RecallEnvironment(length=5)],
        multithreading=False,
    )
    SEEN.clear()
    loop = build_spied_loop(environment, collect_episodes_per_iteration=2)
    loop.run(1)
    (frames,) = SEEN
    ends = frames.next_step_type == ts.StepType.LAST
    np.testing.assert_array_equal(ends, [[0, 1, 0, 0, 0], [0, 0, 0, 0, 1]])


@pytest.mark.slow
def test_padding_is_no_episode():
    padded = wrappers.FixedLength(testing.RecallEnvironment(length=2), 4)
    SEEN.clear()
    loop = build_spied_loop(padded, collect_episodes_per_iteration=2)
    assert loop.run(2).episodes == 4
    assert SEEN
    for frames in SEEN:
        np.testing.assert_array_equal(frames.step_type, [[0, 1, 2, 2, 2, 0, 1]])
        np.testing.assert_array_equal(frames.next_step_type, [[1, 2, 2, 2, 0, 1, 2]])


def assert_same_agents(first, second, **tolerance):
    for ours, theirs in zip(
        first.agent.variables(), second.agent.variables(), strict=True
    ):
        np.testing.assert_allclose(ours, theirs, **(tolerance or {"rtol": 0}))


@pytest.mark.slow
def test_the_same_seed_gives_the_same_weights():
    first, second = take_loop(), take_loop()
    first.run(4)
    second.run(4)
    assert_same_agents(first, second)


def test_a_restored_loop_goes_on_bit_for_bit(tmp_path):
    whole = take_loop()
    whole.run(3)
    path = tf.train.Checkpoint(**whole.checkpoint_items()).write(str(tmp_path / "c"))
    whole.run(4)
    after = take_loop()
    tf.train.Checkpoint(**after.checkpoint_items()).read(path)
    after.run(4)
    assert_same_agents(whole, after)


def test_calls_of_all_sizes_share_one_trace():
    loop = take_loop()
    for size in (1, 3, 2):
        loop.run(size)
    assert loop.trace_count() == 1


def test_it_learns_to_repeat_the_bit():
    loop = make_loop(
        testing.RecallEnvironment(length=10), collect_episodes_per_iteration=4
    )
    loop.run(100)
    assert loop.info().average_return > 9


class Growing(testing.RecallEnvironment):
    """Every episode is one step longer than the one before."""

    def _reset(self):
        self.length += 1
        return super()._reset()


@pytest.mark.parametrize(
    "jit_compile", [False, pytest.param(True, marks=pytest.mark.slow)]
)
def test_episodes_that_do_not_fit_the_buffer_are_an_error(jit_compile):
    environment = Growing(length=17)
    if jit_compile:
        loop = make_loop(environment, max_length=20, jit_compile=True)
    else:
        loop, _ = take_spied_loop(environment, max_length=20)
    # The first reset is the run's own; 19 and 20 steps fit.
    loop.run(2)
    before = [variable.numpy() for variable in loop.agent.variables()]
    with pytest.raises(tf.errors.InvalidArgumentError) as error:
        loop.run(3)
    assert error.value.message == (
        "EpisodicLoop: the episodes of one iteration do not fit into the buffer's "
        "max_length=20 frames of an environment; make it larger, or limit the episodes "
        "with a TimeLimit."
    )
    for variable, value in zip(loop.agent.variables(), before, strict=True):
        np.testing.assert_array_equal(variable, value)
    assert loop.info().environment_steps == 19 + 20 + 20
    environment.length = 2
    assert loop.run(1).episodes == 3


def test_after_an_error_a_loop_begins_afresh():
    environment = testing.RecallEnvironment(length=30)
    loop, seen = take_spied_loop(environment, max_length=20)
    with pytest.raises(tf.errors.InvalidArgumentError, match="max_length=20"):
        loop.run(3)
    environment.length = 3
    loop.run(1)
    (frames,) = seen
    np.testing.assert_array_equal(frames.step_type, [[0, 1, 1]])


@pytest.mark.parametrize("episodes", [0, 3])
def test_episodes_that_cannot_be_shared_out_are_an_error(episodes):
    environment = batched_py_environment.BatchedPyEnvironment(
        [testing.RecallEnvironment(), testing.RecallEnvironment()], multithreading=False
    )
    with pytest.raises(ValueError, match=f"multiple of .* 2, got {episodes}"):
        make_loop(environment, collect_episodes_per_iteration=episodes)


class Various(testing.RecallEnvironment):
    """Episodes of 3 to 50 steps; a time limit cuts every other one short."""

    def _reset(self):
        self.length = int(self._rng.integers(3, 51))
        return super()._reset()

    def _step(self, action):
        time_step = super()._step(action)
        if time_step.is_last() and self.length % 2:
            return time_step._replace(discount=np.float32(1))
        return time_step


def options_with_values(environment):
    """Everything that can go into REINFORCE's loss."""
    return {
        "value_network": value_network.ValueNetwork(
            environment.observation_spec(), fc_layer_params=(), seed=0
        ),
        "gamma": 0.9,
        "entropy_regularization": 0.1,
        "gradient_clipping": 1.0,
    }


def various(jit_compile):
    environment = tf_py_environment.TFPyEnvironment(
        batched_py_environment.BatchedPyEnvironment(
            [Various(seed=seed) for seed in range(2)], multithreading=False
        )
    )
    return make_loop(
        environment,
        max_length=300,
        agent_options=options_with_values(environment),
        collect_episodes_per_iteration=4,
        jit_compile=jit_compile,
    )


def native_loop(jit_compile):
    """A native environment, a part of whose episodes a time limit cuts short."""
    environment = native.load("CartPole-v0", 3, seed=5, max_episode_steps=15)
    return make_loop(
        environment,
        max_length=250,
        agent_options=options_with_values(environment),
        collect_episodes_per_iteration=6,
        jit_compile=jit_compile,
    )


@pytest.mark.parametrize(
    "make", [native_loop, pytest.param(various, marks=pytest.mark.slow)]
)
def test_a_compiled_loop_gives_the_weights_of_a_plain_one(make):
    """Whatever frames of longer iterations are left in its buffer.

    Taken for what follows a time limit, those would change the weights by 1e-4.
    """
    plain, compiled = make(jit_compile=False), make(jit_compile=True)
    for _ in range(3):
        ours, theirs = plain.run(5), compiled.run(5)
        np.testing.assert_allclose(ours.loss, theirs.loss, rtol=1e-5)
        assert ours._replace(loss=0) == theirs._replace(loss=0)
    assert_same_agents(plain, compiled, rtol=1e-5, atol=1e-5)
    assert compiled.trace_count() == 1
