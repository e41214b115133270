"""The loop that only collects."""

import itertools

import numpy as np
import pytest
import tensorflow as tf

from tests.agents.every_agent import KINDS
from tfrl import environments, testing, train
from tfrl.agents.random import random_agent
from tfrl.environments import native, test_envs


def make_loop(environment, observers=(), seed=2):
    agent = KINDS["A2CAgent"].make(
        environment.time_step_spec(), environment.action_spec()
    )
    return train.ActorLoop(environment, agent, observers, seed=seed), agent


def test_it_shows_every_step_and_trains_nothing():
    frames = []
    loop, agent = make_loop(
        native.load("CartPole-v1", batch_size=3, seed=1),
        [train.host_observer(frames.append)],
    )
    before = [variable.numpy() for variable in agent.variables()]
    info = loop.run(5)
    assert (info.iteration, info.train_steps) == (5, 0)
    assert len(frames) == 5
    assert frames[0].observation.shape == (3, 4)
    assert frames[0].policy_info["dist_params"]["logits"].shape == (3, 2)
    for earlier, later in itertools.pairwise(frames):
        np.testing.assert_array_equal(earlier.next_step_type, later.step_type)
    for variable, value in zip(agent.variables(), before, strict=True):
        np.testing.assert_array_equal(variable.numpy(), value)


@pytest.mark.slow
def test_it_returns_the_frames_that_it_would_show():
    shown = []
    loop, _ = make_loop(
        native.load("CartPole-v1", batch_size=3, seed=1),
        [train.host_observer(shown.append)],
    )
    loop.run(27)
    expected = tf.nest.map_structure(lambda *leaves: np.stack(leaves), *shown)
    loop, _ = make_loop(native.load("CartPole-v1", batch_size=3, seed=1))
    parts = [loop.collect_frames(9) for _ in range(3)]
    found = tf.nest.map_structure(lambda *leaves: np.concatenate(leaves), *parts)
    assert found.observation.shape == (27, 3, 4)
    tf.nest.map_structure(np.testing.assert_array_equal, found, expected)
    info = loop.run(0)
    assert info.iteration == 27
    assert info.environment_steps == np.sum(expected.step_type != 2)


class Breaks(test_envs.CountingEnv):
    """Breaks at its seventh step."""

    steps = 0

    def _step(self, action):
        self.steps += 1
        if self.steps == 7:
            raise ArithmeticError("broken")
        return super()._step(action)


def test_an_environment_in_python_raises_its_own_exception_and_goes_on():
    loop, _ = make_loop(environments.TFPyEnvironment(Breaks(steps_per_episode=50)))
    frames = loop.collect_frames(4)
    assert frames.observation.numpy().tolist() == [[0], [1], [2], [3]]
    with pytest.raises(ArithmeticError, match="broken"):
        loop.collect_frames(4)
    assert loop.collect_frames(4).observation.shape == (4, 1)
    with pytest.raises(ValueError, match="num_steps: expected an integer of at least"):
        loop.collect_frames(0)


def test_a_rollout_has_the_frames_and_the_time_step_reached():
    loop, _ = make_loop(native.load("CartPole-v1", batch_size=3, seed=1))
    expected = loop.collect_frames(12)
    loop, _ = make_loop(native.load("CartPole-v1", batch_size=3, seed=1))
    for i in range(3):
        rollout, policy_state = loop.collect_rollout(4)
        assert policy_state == ()
        part = tf.nest.map_structure(lambda t, i=i: t[4 * i : 4 * i + 4], expected)
        for found, frames in zip(rollout, part, strict=True):
            tf.nest.map_structure(
                lambda f, e: np.testing.assert_array_equal(f[:, :-1], _batch_major(e)),
                found,
                frames,
            )
        if i < 2:
            for field in ("observation", "step_type"):
                next_one = getattr(expected, field)[4 * i + 4]
                found = getattr(rollout, field)[:, -1]
                np.testing.assert_array_equal(found, next_one, field)


def _batch_major(frames):
    return np.swapaxes(frames, 0, 1)


@pytest.mark.slow
def test_a_loop_goes_on_from_the_state_of_another_one():
    def make(seed):
        return make_loop(native.load("CartPole-v1", 3, seed), seed=seed)[0]

    loop, other = make(1), make(2)
    for each in (loop, other):
        each.collect_frames(9)
    other.restore_state(loop.save_state())
    tf.nest.map_structure(
        np.testing.assert_array_equal, loop.collect_frames(9), other.collect_frames(9)
    )
    assert other.info()[:-1] == loop.info()[:-1]


@pytest.mark.slow
@pytest.mark.parametrize("jit_compile", [False, True])
def test_steps_follow_one_another_whatever_acts(jit_compile):
    environment = environments.TFPyEnvironment(testing.CountingEnvironment(4))
    agent = random_agent.RandomAgent(
        environment.time_step_spec(), environment.action_spec()
    )
    seen = []
    observers = [train.host_observer(lambda frame: seen.append(*frame.observation))]
    loop = train.ActorLoop(environment, agent, observers, jit_compile=jit_compile)
    for _ in range(50):
        loop.run(5)
    assert seen == [*range(5)] * 50
