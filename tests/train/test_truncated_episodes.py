"""A loop bootstraps every truncated episode, the last of each row included.

The value network says 10 everywhere and rewards are 1, so an episode that a time limit
ends after five steps has the returns 15, 14, 13, 12 and 11. The loss is the squared
error of the values per episode, 25 + 16 + 9 + 4 + 1 = 55. Without the last value the
returns are 5, 4, 3, 2 and 1, and the loss is 25 + 36 + 49 + 64 + 81 = 255.
"""

import keras
import numpy as np
import pytest
import tensorflow as tf

from tests.train import used_loops
from tfrl import replay_service, testing
from tfrl.agents.reinforce import reinforce_agent
from tfrl.environments import batched_py_environment
from tfrl.networks import actor_distribution_network, network
from tfrl.replay_buffers import (
    replay_buffer,
    reverb_replay_buffer,
    reverb_utils,
    tf_uniform_replay_buffer,
)
from tfrl.specs import array_spec, tensor_spec
from tfrl.train.loops import episodic_loop

TRUNCATED, TERMINATED = 55.0, 255.0


class Constant(network.Network):
    """The same value everywhere, which is the one weight."""

    def __init__(self, spec, value):
        super().__init__(spec, (), "Constant")
        self._bias = keras.Variable(value, dtype="float32", name="value")
        self._track_variable(self._bias)

    def call(self, observation):
        return self._bias + 0.0 * observation[..., 0], ()


def terminating(length, **kwargs):
    return testing.CountingEnvironment(
        length,
        observation_spec=array_spec.ArraySpec([1], np.float32),
        reward=lambda count, action: 1.0,
        **kwargs,
    )


def limited(length):
    return terminating(length, truncates=True)


def build_loop(
    environment, episodes=1, max_length=100, make_buffer=None, optimizer=None, **kwargs
):
    spec = environment.observation_spec()
    options = {"value_network": Constant(spec, 10.0), **kwargs.pop("agent", {})}
    agent = reinforce_agent.ReinforceAgent(
        environment.time_step_spec(),
        environment.action_spec(),
        actor_network=actor_distribution_network.ActorDistributionNetwork(
            spec, environment.action_spec(), fc_layer_params=(), seed=0
        ),
        optimizer=optimizer or keras.optimizers.SGD(0.0),
        value_estimation_loss_coef=1.0,
        advantage_fn=lambda returns, values: tf.zeros_like(returns),
        normalize_returns=False,
        **options,
    )
    agent.initialize()
    if make_buffer is None:
        buffer = tf_uniform_replay_buffer.TFUniformReplayBuffer(
            agent.collect_data_spec, environment.batch_size, max_length
        )
    else:
        buffer = make_buffer(agent.collect_data_spec)
    return episodic_loop.EpisodicLoop(
        environment,
        agent,
        buffer,
        collect_episodes_per_iteration=episodes * environment.batch_size,
        seed=0,
        **kwargs,
    )


pool = used_loops.Pool(build_loop)


def batch_of(environments):
    return batched_py_environment.BatchedPyEnvironment(
        environments, multithreading=False
    )


def make_loop(environments, **arguments):
    """Returns a loop as it is built."""
    return pool.take(batch_of(environments), **arguments)


def loss_of(loop):
    """The loss of three iterations, which must not differ."""
    losses = {loop.run(1).loss, loop.run(2).loss}
    assert len(losses) == 1
    return losses.pop()


# XLA takes three seconds for each of these loops, and reads its frames in the same way.
# `test_episodic_loop.py` compares a compiled one with a plain one.
SLOW_IF_COMPILED = pytest.mark.parametrize(
    "jit_compile", [False, pytest.param(True, marks=pytest.mark.slow)]
)


@pytest.mark.slow
@SLOW_IF_COMPILED
@pytest.mark.parametrize(
    "length", [5, *(pytest.param(n, marks=pytest.mark.slow) for n in (37, 149))]
)
def test_both_episodes_of_a_row_are_bootstrapped(jit_compile, length):
    """Also if they fill what a compiled loop trains on.

    Two episodes and the boundary between them are 11, 75 or 299 frames, and a compiled
    loop trains on a quarter of `max_length` where that is enough.
    """
    loop = make_loop(
        [limited(length)], episodes=2, max_length=299, jit_compile=jit_compile
    )
    assert loss_of(loop) == sum(step**2 for step in range(1, length + 1))
    assert loop.trace_count() == 1


@pytest.mark.slow
@SLOW_IF_COMPILED
def test_every_member_is_bootstrapped_where_it_ends(jit_compile):
    """The iteration ends where the last member ends its first episode.

    The first member is then at the end of its second episode, the third in the middle
    of its second, the last at the start of its second.
    """
    environments = [limited(5), limited(11), limited(6), terminating(10)]
    loop = make_loop(environments, max_length=20, jit_compile=jit_compile)
    eleven, six, ten = (
        sum(step**2 for step in range(1, 12)),
        sum(step**2 for step in range(1, 7)),
        sum(step**2 for step in range(10)),
    )
    expected = (TRUNCATED + eleven + six + ten) / 4
    assert loss_of(loop) == expected


# Two episodes and the boundary between them are 11 frames.
@SLOW_IF_COMPILED
@pytest.mark.parametrize(
    ("make_second", "loss"), [(limited, TRUNCATED), (terminating, TERMINATED)]
)
def test_members_that_end_together_are_bootstrapped_unless_they_terminate(
    jit_compile, make_second, loss
):
    environments = [limited(5), make_second(5), limited(5)]
    loop = make_loop(environments, episodes=2, max_length=11, jit_compile=jit_compile)
    np.testing.assert_allclose(loss_of(loop), (2 * TRUNCATED + loss) / 3, rtol=1e-6)


class Unlimited(replay_buffer.ReplayBuffer):
    """A user's own buffer of one row, which does not say how much it keeps."""

    def __init__(self, data_spec):
        super().__init__(data_spec, capacity=50)
        self._ring = tf_uniform_replay_buffer.TFUniformReplayBuffer(data_spec, 1, 50)

    @property
    def works_in_graph(self):
        return True

    def _num_frames(self):
        return self._ring.num_frames()

    def _add_batch(self, items):
        return self._ring.add_batch(items)

    def _gather_all(self):
        return self._ring.gather_all()

    def _clear(self):
        return self._ring.clear()


@pytest.mark.slow
def test_a_buffer_without_a_limit_gets_the_last_observation_as_a_frame():
    loop = make_loop([limited(5)], episodes=2, make_buffer=Unlimited, own=True)
    assert loss_of(loop) == TRUNCATED


@pytest.mark.slow
def test_episodes_in_a_queue_are_bootstrapped():
    """The rows of this buffer are episodes, whichever member they are from."""
    servers = []

    def make_buffer(data_spec):
        table = replay_service.Table.queue(
            "episodes", 10, signature=tensor_spec.add_outer_dim(data_spec)
        )
        servers.append(replay_service.Server([table]))
        return reverb_replay_buffer.ReverbReplayBuffer(
            data_spec,
            "episodes",
            None,
            local_server=servers[0],
            make_observer=lambda client: reverb_utils.ReverbAddEpisodeObserver(
                client, "episodes", 12
            ),
            batch_size=2,
        )

    loop = make_loop(
        [limited(5), limited(5)], episodes=2, make_buffer=make_buffer, own=True
    )
    try:
        assert loss_of(loop) == TRUNCATED
    finally:
        servers[0].stop()


@SLOW_IF_COMPILED
def test_the_environment_takes_no_step_for_the_last_observation(jit_compile):
    loop = make_loop([limited(5)], episodes=2, max_length=299, jit_compile=jit_compile)
    assert loop.run(3)._replace(loss=0) == (3, 3, 30, 6, 5.0, 0)


SEEN = []


def build_spied_loop(environment, **kwargs):
    """A loop that appends what its agent trains with to `SEEN`."""
    loop = build_loop(environment, **kwargs)
    train = loop.agent.train

    def spy(frames, weights=None):
        leaves = [frames.step_type, frames.next_step_type, frames.observation[..., 0]]
        called = tf.numpy_function(
            lambda *leaves: SEEN.append(leaves) or np.int64(0), leaves, tf.int64
        )
        with tf.control_dependencies([called]):
            return train(frames, weights)

    loop.agent.train = spy
    return loop


spied_pool = used_loops.Pool(build_spied_loop)


def trained_with(environments, **arguments):
    """The step types and observations of an iteration, as the agent got them."""
    loop = spied_pool.take(batch_of(environments), **arguments)
    SEEN.clear()
    info = loop.run(1)
    # The environment takes the steps of the episodes, and no others.
    assert info.environment_steps == sum(each.num_steps for each in environments)
    return SEEN[0]


@pytest.mark.slow
def test_a_boundary_follows_the_last_frame_of_a_truncated_episode():
    arrays = trained_with([limited(2), terminating(2), terminating(1)])
    step_type, next_step_type, observation = arrays
    np.testing.assert_array_equal(observation, [[0, 1, 2], [0, 1, 2], [0, 1, 0]])
    np.testing.assert_array_equal(step_type, [[0, 1, 2], [0, 1, 2], [0, 2, 0]])
    # What follows a member's last episode ends no episode.
    np.testing.assert_array_equal(next_step_type, [[1, 2, 1], [1, 2, 1], [2, 1, 1]])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("make_environment", "agent"),
    [
        (terminating, {}),
        pytest.param(limited, {"value_network": None}, marks=pytest.mark.slow),
    ],
)
def test_nothing_follows_it_if_nothing_is_bootstrapped(make_environment, agent):
    environments = [make_environment(2) for _ in range(3)]
    step_type, _, _ = trained_with(environments, agent=agent)
    np.testing.assert_array_equal(step_type, [[0, 1]] * 3)


@pytest.mark.slow
def test_the_value_of_a_task_without_an_end_is_learned_from_short_episodes():
    """Rewards of 1 for ever are worth 1 / (1 - 0.5) = 2, in pieces of 3 steps too."""
    loop = make_loop(
        [limited(3), limited(3)],
        optimizer=keras.optimizers.SGD(0.1),
        agent={"gamma": 0.5},
        own=True,
    )
    loop.run(100)
    (value,) = [v for v in loop.agent.variables() if "value" in v.name]
    np.testing.assert_allclose(value, 2.0, rtol=1e-4)
