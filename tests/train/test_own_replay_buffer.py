"""Replay buffers that a user writes work in the loops without changes."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from tfrl.agents.dqn import dqn_agent
from tfrl.agents.reinforce import reinforce_agent
from tfrl.environments import native
from tfrl.networks import actor_distribution_network, q_network
from tfrl.replay_buffers import BufferInfo, ReplayBuffer
from tfrl.train.loops import episodic_loop, off_policy_loop
from tfrl.train.runs import run, run_directory


class Ring(ReplayBuffer):
    """The last `capacity` steps of one environment, a variable for each leaf.

    It holds back nothing of the base class that it does not need.
    """

    def __init__(self, data_spec, capacity, answer="id"):
        super().__init__(data_spec, capacity)
        self._answer = answer
        self._leaves = [
            tf.Variable(tf.zeros([capacity, *spec.shape], spec.dtype), trainable=False)
            for spec in tf.nest.flatten(data_spec)
        ]
        self._added = tf.Variable(0, dtype=tf.int64, trainable=False)

    def _num_frames(self):
        return tf.minimum(self._added, self.capacity)

    def _add_batch(self, items):
        row = [self._added % self.capacity]
        for leaf, item in zip(self._leaves, tf.nest.flatten(items), strict=True):
            leaf.scatter_update(tf.IndexedSlices(item, row))
        number = self._added.assign_add(1, read_value=True)
        if self._answer == "id":
            return number
        return number.op

    def _read(self, ids):
        leaves = [tf.gather(leaf, ids % self.capacity) for leaf in self._leaves]
        return tf.nest.pack_sequence_as(self.data_spec, leaves)

    def _get_next(self, sample_batch_size, num_steps, time_stacked):
        first = tf.maximum(self._added - self.capacity, 0)
        starts = tf.random.uniform(
            [sample_batch_size, 1], first, self._added - num_steps + 1, tf.int64
        )
        items = self._read(starts + tf.range(num_steps, dtype=tf.int64))
        return items, BufferInfo(starts, ())

    def _as_dataset(self, sample_batch_size, num_steps, *_):
        def draw(_):
            return self._get_next(sample_batch_size, num_steps, True)

        return tf.data.Dataset.counter().map(draw)

    def _gather_all(self):
        ids = tf.range(tf.maximum(self._added - self.capacity, 0), self._added)
        return self._read(ids[None])

    def _clear(self):
        self._added.assign(0)


class CompiledRing(Ring):
    """The same, for programs that XLA compiles."""

    @property
    def supports_xla(self):
        return True

    @property
    def max_length(self):
        return self.capacity

    def gather_first(self, num_frames):
        ids = tf.range(num_frames, dtype=tf.int64)
        items = self._read(ids[None])

        def blank(leaf):
            shape = [1, num_frames, *[1] * (leaf.shape.rank - 2)]
            held = tf.reshape(ids < self._added, shape)
            return tf.where(held, leaf, tf.zeros([], leaf.dtype))

        return tf.nest.map_structure(blank, items)


def make_dqn(environment):
    network = q_network.QNetwork(
        environment.observation_spec(),
        environment.action_spec(),
        fc_layer_params=(),
        seed=0,
    )
    agent = dqn_agent.DqnAgent(
        environment.time_step_spec(),
        environment.action_spec(),
        q_network=network,
        optimizer=keras.optimizers.Adam(1e-2),
        seed=0,
    )
    agent.initialize()
    return agent


def make_off_policy_loop(make_buffer, **kwargs):
    environment = native.load("CartPole-v1", seed=0)
    agent = make_dqn(environment)
    return off_policy_loop.OffPolicyLoop(
        environment,
        agent,
        make_buffer(agent.collect_data_spec, 50),
        initial_collect_steps=20,
        sample_batch_size=8,
        seed=0,
        **kwargs,
    )


@pytest.mark.cpu
@pytest.mark.parametrize(
    ("sampling", "answer"),
    [("dataset", "id"), pytest.param("variables", "op", marks=pytest.mark.slow)],
)
def test_an_off_policy_loop_trains_from_it(sampling, answer):
    loop = make_off_policy_loop(
        lambda *args: Ring(*args, answer=answer), sampling=sampling
    )
    before = [v.numpy() for v in loop.agent.variables()]
    info = loop.run(40)
    assert info.train_steps == 40
    assert np.isfinite(info.loss)
    assert int(loop.checkpoint_items()["replay_buffer"].num_frames()) == 50
    after = [v.numpy() for v in loop.agent.variables()]
    assert any((a != b).any() for a, b in zip(after, before, strict=True))


@pytest.mark.slow
def test_a_compiled_off_policy_loop_trains_from_it():
    loop = make_off_policy_loop(CompiledRing, jit_compile=True)
    info = loop.run(40)
    assert info.train_steps == 40
    assert np.isfinite(info.loss)


@pytest.mark.cpu
def test_one_that_xla_cannot_compile_is_refused_or_left_plain():
    with pytest.raises(ValueError, match=r"got True for a Ring, expected a buffer "):
        make_off_policy_loop(Ring, jit_compile=True)
    with pytest.warns(
        RuntimeWarning, match="'auto' does not compile .* got a Ring, ex"
    ):
        assert make_off_policy_loop(Ring, jit_compile="auto").samples_from_dataset
    compiled = make_off_policy_loop(CompiledRing, jit_compile="auto")
    assert not compiled.samples_from_dataset


def test_a_max_length_below_an_examples_is_refused():
    environment = native.load("CartPole-v1", seed=0)
    agent = make_dqn(environment)
    with pytest.raises(ValueError, match="num_steps: got 2, but the buffer keeps only"):
        off_policy_loop.OffPolicyLoop(
            environment, agent, CompiledRing(agent.collect_data_spec, 1)
        )


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "jit_compile"), [(Ring, False), (CompiledRing, True)])
def test_an_episodic_loop_trains_from_it(kind, jit_compile):
    environment = native.load("CartPole-v1", seed=0)
    agent = reinforce_agent.ReinforceAgent(
        environment.time_step_spec(),
        environment.action_spec(),
        actor_network=actor_distribution_network.ActorDistributionNetwork(
            environment.observation_spec(),
            environment.action_spec(),
            fc_layer_params=(),
            seed=0,
        ),
        optimizer=keras.optimizers.Adam(1e-2),
        seed=0,
    )
    agent.initialize()
    loop = episodic_loop.EpisodicLoop(
        environment,
        agent,
        kind(agent.collect_data_spec, 600),
        seed=0,
        jit_compile=jit_compile,
    )
    info = loop.run(2)
    assert (info.train_steps, info.episodes) == (2, 2)
    assert np.isfinite(info.loss)


@pytest.mark.slow
def test_a_run_saves_and_resumes_it(tmp_path):
    def make_run():
        directory = run_directory.RunDirectory(tmp_path, {})
        loop = make_off_policy_loop(Ring)
        return run.Run(loop, directory, num_iterations=10, checkpoint_interval=5), loop

    first, loop = make_run()
    first.run()
    _, again = make_run()
    ours = loop.checkpoint_items()["replay_buffer"].gather_all()
    theirs = again.checkpoint_items()["replay_buffer"].gather_all()
    assert ours.observation.shape == (1, 30, 4)
    tf.nest.map_structure(np.testing.assert_array_equal, ours, theirs)
