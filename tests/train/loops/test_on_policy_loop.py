"""What an on-policy loop shows its agent, and when."""

from typing import NamedTuple

import numpy as np
import pytest
import tensorflow as tf

from tfrl import train
from tfrl.agents import tf_agent
from tfrl.environments import (
    batched_py_environment,
    py_environment,
    tf_py_environment,
)
from tfrl.policies import tf_policy
from tfrl.specs import array_spec
from tfrl.trajectories import policy_step
from tfrl.trajectories import time_step as ts

BATCH_SIZE, NUM_STEPS = 2, 6


class Numbered(py_environment.PyEnvironment):
    """Observations are the member's number and a clock; episodes take five steps."""

    def __init__(self, number, fails_at=None):
        super().__init__()
        self._number = number
        self._fails_at = fails_at
        self._clock = -1
        self.actions = []

    def action_spec(self):
        return array_spec.BoundedArraySpec([], np.float32, -1.0, 1.0)

    def observation_spec(self):
        return array_spec.ArraySpec([2], np.float32)

    def _observe(self):
        self._clock += 1
        return np.array([self._number, self._clock], np.float32)

    def _reset(self):
        return ts.restart(self._observe())

    def _step(self, action):
        self.actions.append(float(action))
        if self._clock == self._fails_at:
            self._fails_at = None
            raise RuntimeError("the cable is loose")
        observation = self._observe()
        if self._clock % 6 == 5:
            return ts.termination(observation, 1.0)
        return ts.transition(observation, 1.0)


class Five(tf_policy.TFPolicy):
    """Chooses 5, far out of bounds; its state counts its steps."""

    def __init__(self, *specs, counts):
        state_spec = tf.TensorSpec([], tf.float32) if counts else ()
        super().__init__(*specs, policy_state_spec=state_spec, clip=False)

    def _action(self, time_step, policy_state, seed):
        action = tf.fill(tf.shape(time_step.step_type), 5.0)
        state = tf.nest.map_structure(lambda count: count + 1, policy_state)
        return policy_step.PolicyStep(action, state)

    def _distribution(self, time_step, policy_state):
        raise NotImplementedError


class Extra(NamedTuple):
    approx_kl: tf.Tensor


class Recorder(tf_agent.TFAgent):
    """Records what it is given, as the arrays of `events`."""

    def __init__(self, environment, counts=False, kl_step=0.0, records=True):
        specs = environment.time_step_spec(), environment.action_spec()
        policy = Five(*specs, counts=counts)
        super().__init__(*specs, policy, policy, None)
        self.events = []
        self._kl_step = kl_step
        self._records = records

    def _record(self, name, frames, state=()):
        if not self._records:  # A compiled program cannot.
            return tf.constant(0, tf.int64)

        def remember(*leaves):
            columns = len(tf.nest.flatten(self.collect_data_spec))
            frames = tf.nest.pack_sequence_as(self.collect_data_spec, leaves[:columns])
            self.events.append((name, frames, *leaves[columns:]))
            return np.int64(0)

        leaves = [*tf.nest.flatten(frames), *tf.nest.flatten(state)]
        return tf.numpy_function(remember, leaves, tf.int64)

    def preprocess_sequence(self, experience, policy_state=()):
        with tf.control_dependencies([self._record("rollout", experience)]):
            return tf.nest.map_structure(lambda t: tf.identity(t[:, :-1]), experience)

    def _train(self, experience, weights=None, policy_state=()):
        recorded = self._record("minibatch", experience, policy_state)
        with tf.control_dependencies([recorded, experience.reward]):
            count = self.train_step_counter.assign_add(1)
        loss = tf.cast(count, tf.float32)
        return tf_agent.LossInfo(loss, Extra(self._kl_step * loss))

    def _loss(self, experience, weights=None, training=False):
        raise NotImplementedError

    def update_normalizers(self, frames):
        # Reading a variable comes after the assignments before it.
        self._record("normalizers", frames, self.train_step_counter.read_value())

    def given(self, name):
        """The frames of the events of this name."""
        return [event[1] for event in self.events if event[0] == name]


def make_loop(counts=False, kl_step=0.0, records=True, fails_at=None, **kwargs):
    environment = tf_py_environment.TFPyEnvironment(
        batched_py_environment.BatchedPyEnvironment(
            [Numbered(number, fails_at) for number in range(BATCH_SIZE)],
            multithreading=False,
        )
    )
    agent = Recorder(environment, counts, kl_step, records)
    settings = {"collect_steps_per_iteration": NUM_STEPS, "seed": 3, **kwargs}
    return train.OnPolicyLoop(environment, agent, **settings)


@pytest.fixture(scope="module")
def shuffled():
    """A loop after two iterations of three epochs of three minibatches."""
    loop = make_loop(num_epochs=3, minibatch_size=4)
    loop.info_after = loop.run(2)
    return loop


def frames_of(minibatches):
    """The observations in the minibatches, in order."""
    return [tuple(o) for m in minibatches for o in m.observation[:, 0]]


def test_every_frame_is_in_one_minibatch_of_each_epoch(shuffled):
    agent = shuffled.agent
    minibatches = agent.given("minibatch")
    assert {m.observation.shape for m in minibatches} == {(4, 1, 2)}
    epochs = [frames_of(minibatches[i : i + 3]) for i in range(0, 18, 3)]
    for number, rollout in enumerate(agent.given("rollout")):
        expected = {tuple(o) for row in rollout.observation[:, :-1] for o in row}
        assert len(expected) == 12
        for epoch in epochs[3 * number : 3 * number + 3]:
            assert len(epoch) == 12
            assert set(epoch) == expected
    # Each epoch has an order of its own; so do the rollouts, whose frames differ.
    orders = [tuple((m, c % 6) for m, c in epoch) for epoch in epochs]
    assert len(set(orders)) == 6
    assert shuffled.info_after.train_steps == 18


def test_a_minibatchs_fields_are_those_of_the_same_frames(shuffled):
    rollouts = shuffled.agent.given("rollout")
    known = {
        tuple(rollout.observation[b, t]): (
            rollout.step_type[b, t],
            rollout.next_step_type[b, t],
            rollout.reward[b, t],
            rollout.discount[b, t],
        )
        for rollout in rollouts
        for b in range(BATCH_SIZE)
        for t in range(NUM_STEPS)
    }
    for m in shuffled.agent.given("minibatch"):
        for i, observation in enumerate(m.observation[:, 0]):
            assert known[tuple(observation)] == (
                *(m.step_type[i, 0], m.next_step_type[i, 0]),
                *(m.reward[i, 0], m.discount[i, 0]),
            )


def test_a_rollout_ends_with_the_time_step_reached(shuffled):
    first, second = shuffled.agent.given("rollout")
    # FIRST, four times MID, and LAST: the episode's last observation.
    steps = [0, 1, 1, 1, 1, 2, 0]
    np.testing.assert_array_equal(first.step_type, [steps, steps])
    np.testing.assert_array_equal(
        first.next_step_type[:, :-1], [[1, 1, 1, 1, 2, 0]] * 2
    )
    np.testing.assert_array_equal(first.observation[:, -1], second.observation[:, 0])
    np.testing.assert_array_equal(first.discount[:, :-1], [[1, 1, 1, 1, 0, 1]] * 2)
    for field in ("action", "reward", "discount"):
        column = getattr(first, field)
        np.testing.assert_array_equal(column[:, -1], column[:, -2])
    assert shuffled.info_after.episodes == 4
    assert shuffled.info_after.environment_steps == 20


def test_the_normalizers_change_after_the_epochs_by_each_frame_once(shuffled):
    events = shuffled.agent.events
    assert [event[2] for event in events if event[0] == "normalizers"] == [9, 18]
    given = shuffled.agent.given("normalizers")
    for frames, rollout in zip(given, shuffled.agent.given("rollout"), strict=True):
        np.testing.assert_array_equal(frames.observation, rollout.observation[:, :-1])


def test_actions_are_clipped_where_they_enter_the_environment_alone(shuffled):
    environments = shuffled.environment.pyenv.envs
    assert {a for e in environments for a in e.actions} == {1.0}
    np.testing.assert_array_equal(
        shuffled.agent.given("rollout")[0].action[:, :-1], 5.0
    )


def test_the_loss_is_the_mean_over_the_updates(shuffled):
    # The losses are 1 to 9 and 10 to 18.
    assert shuffled.info_after.loss == 9.5


@pytest.mark.slow
def test_calls_of_all_sizes_share_one_trace():
    loop = make_loop(num_epochs=3, minibatch_size=4)
    loop.run(2)
    loop.run(1)
    assert loop.trace_count() == 1


def test_minibatches_of_a_recurrent_agent_are_whole_sequences():
    loop = make_loop(counts=True, num_epochs=2, minibatch_size=NUM_STEPS)
    loop.run(2)
    agent = loop.agent
    rollouts = agent.given("rollout")
    minibatches = [event[1:] for event in agent.events if event[0] == "minibatch"]
    assert len(minibatches) == 8
    for i, (frames, state) in enumerate(minibatches):
        rollout = rollouts[i // 4]
        member = int(frames.observation[0, 0, 0])
        np.testing.assert_array_equal(
            frames.observation, rollout.observation[member : member + 1, :-1]
        )
        # The state before the rollout: the steps since the episode's start.
        assert state == [0.0 if i < 4 else NUM_STEPS]
    for epoch in range(0, 8, 2):
        members = {m[0].observation[0, 0, 0] for m in minibatches[epoch : epoch + 2]}
        assert members == {0.0, 1.0}


def test_sequences_are_pieces_of_rollouts_with_their_states():
    loop = make_loop(counts=True, num_epochs=2, minibatch_size=6, sequence_length=3)
    loop.run(2)
    minibatches = [event[1:] for event in loop.agent.events if event[0] == "minibatch"]
    assert len(minibatches) == 8
    for i, rollout in enumerate(loop.agent.given("rollout")):
        for epoch in range(2):
            start = 4 * i + 2 * epoch
            seen = []
            for frames, states in minibatches[start : start + 2]:
                assert frames.observation.shape == (2, 3, 2)
                for observation, state in zip(frames.observation, states, strict=True):
                    member, first = (int(x) for x in observation[0])
                    # The policy counts an episode's steps. Before the first frame of
                    # an episode, its state is still that of the last episode.
                    assert state == (first % 6 or first)
                    np.testing.assert_array_equal(
                        observation,
                        rollout.observation[member, first % 6 : first % 6 + 3],
                    )
                    seen.append((member, first))
            assert sorted(seen) == [(m, 6 * i + t) for m in (0, 1) for t in (0, 3)]


def test_without_a_minibatch_size_an_update_takes_the_whole_rollout():
    loop = make_loop(num_epochs=2)
    loop.run(1)
    (rollout,) = loop.agent.given("rollout")
    both = loop.agent.given("minibatch")
    assert len(both) == 2
    for frames in both:
        np.testing.assert_array_equal(frames.observation, rollout.observation[:, :-1])


def test_a_minibatch_beyond_the_target_kl_is_the_iterations_last():
    # The divergence of update n is n / 10, so update 4 exceeds 1.5 * 0.21.
    loop = make_loop(kl_step=0.1, target_kl=0.21, num_epochs=3, minibatch_size=4)
    info = loop.run(1)
    assert info.train_steps == 4
    assert info.loss == 2.5
    # Every later iteration ends after one update.
    assert loop.run(2).train_steps == 6


@pytest.mark.parametrize(
    "jit_compile", [False, pytest.param(True, marks=pytest.mark.slow)]
)
def test_a_rollout_in_which_the_environment_raises_is_not_trained_on(jit_compile):
    loop = make_loop(
        records=False, fails_at=15, minibatch_size=4, jit_compile=jit_compile
    )
    with pytest.raises(RuntimeError, match="the cable is loose"):
        loop.run(5)
    # The third rollout fails.
    assert loop.info().train_steps == 2 * 3
    assert loop.run(1).train_steps == 3 * 3


@pytest.mark.parametrize(
    ("counts", "size", "text"),
    [
        (
            False,
            5,
            "got 5 for 6 steps of 2 .*, 12 frames, expected one of 1, 2, 3, 4, 6, 12",
        ),
        (True, 4, "got 4 for 6 steps of 2 .* expected one of 6, 12, each a number of"),
    ],
)
def test_minibatches_that_do_not_divide_a_rollout_are_an_error(counts, size, text):
    with pytest.raises(ValueError, match=f"minibatch_size: {text}"):
        make_loop(counts, minibatch_size=size)


@pytest.mark.parametrize(
    ("counts", "length", "text"),
    [
        (True, 4, "got 4 for rollouts of 6 steps, expected a divisor"),
        (False, 3, "got 3 for an agent without recurrent networks"),
    ],
)
def test_a_wrong_sequence_length_is_an_error(counts, length, text):
    with pytest.raises(ValueError, match=f"sequence_length: {text}"):
        make_loop(counts, sequence_length=length)


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"sequence_length": 0}, "sequence_length: expected an integer of at least 1"),
        ({"num_epochs": 0}, "num_epochs: expected an integer of at least 1, got 0"),
        ({"collect_steps_per_iteration": 0}, "collect_steps_per_iteration: expected"),
        ({"target_kl": 0.0}, "target_kl: expected a finite number above 0, got 0.0"),
    ],
)
def test_numbers_out_of_range_are_an_error(settings, text):
    with pytest.raises(ValueError, match=text):
        make_loop(**settings)
