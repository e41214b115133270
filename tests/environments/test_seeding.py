"""Environments know whether they were given a seed; loops seed those that were not."""

import functools

import gymnasium
import numpy as np
import pytest

from tests.pairs import some_slow
from tfrl import agents, testing
from tfrl.environments import (
    batched_py_environment,
    native,
    parallel_py_environment,
    random_py_environment,
    suite_gym,
    tf_environment,
    tf_py_environment,
    tf_wrappers,
    wrappers,
)
from tfrl.environments.gymnasium import vector_py_environment
from tfrl.specs import array_spec
from tfrl.train.loops import actor_loop

CHOICE = array_spec.BoundedArraySpec((), np.int32, 0, 1)


def cart_pole():
    return suite_gym.load("CartPole-v1")


def batched(members):
    return batched_py_environment.BatchedPyEnvironment(members, multithreading=False)


MAKERS = {
    "gymnasium": cart_pole,
    "wrapper": lambda: wrappers.RunStats(cart_pole()),
    "batch": lambda: batched([cart_pole(), cart_pole()]),
    "vector": lambda: vector_py_environment.load("CartPole-v1", 2),
    "tensors": lambda: tf_py_environment.TFPyEnvironment(cart_pole()),
    "tensors, wrapped": lambda: tf_wrappers.TFEnvironmentBaseWrapper(
        tf_py_environment.TFPyEnvironment(cart_pole())
    ),
    "native": lambda: native.load("CartPole-v1"),
}


@pytest.mark.parametrize("kind", MAKERS)
def test_an_environment_knows_whether_it_was_given_a_seed(kind):
    environment = MAKERS[kind]()
    assert not environment.is_seeded
    environment.seed(3)
    assert environment.is_seeded


def test_what_was_seeded_before_it_was_wrapped_is_seeded():
    member = cart_pole()
    member.seed(3)
    for wrap in (
        wrappers.RunStats,
        lambda env: batched([env]),
        tf_py_environment.TFPyEnvironment,
    ):
        assert wrap(member).is_seeded
    assert native.load("CartPole-v1", seed=3).is_seeded
    assert random_py_environment.RandomPyEnvironment(CHOICE, seed=3).is_seeded


@pytest.mark.slow
def test_members_in_processes_are_asked():
    # Of nothing here, so that the processes need not import this file and TensorFlow.
    unseeded = functools.partial(suite_gym.load, "CartPole-v1")

    def seeded():
        environment = unseeded()
        environment.seed(3)
        return environment

    with parallel_py_environment.ParallelPyEnvironment([unseeded]) as environment:
        assert not environment.is_seeded
        environment.seed(3)
        assert environment.is_seeded
    with parallel_py_environment.ParallelPyEnvironment([seeded]) as environment:
        assert environment.is_seeded


def after_some_steps(environment, seed):
    """The observations after ten steps of a random agent's loop."""
    agent = agents.RandomAgent(
        environment.time_step_spec(), environment.action_spec(), seed=0
    )
    actor_loop.ActorLoop(environment, agent, [], seed=seed).run(10)
    return environment.current_time_step().observation.numpy()


@pytest.mark.slow
@pytest.mark.parametrize(
    "make",
    some_slow([cart_pole, MAKERS["vector"], MAKERS["batch"]], fast=[MAKERS["vector"]]),
)
def test_a_loop_with_a_seed_is_the_same_in_an_environment_without_one(make):
    runs = [
        after_some_steps(tf_py_environment.TFPyEnvironment(make()), seed)
        for seed in (0, 0, 1)
    ]
    np.testing.assert_array_equal(runs[0], runs[1])
    assert not np.array_equal(runs[0], runs[2])


def test_an_environment_with_a_seed_keeps_it():
    """Two loops with the same seed, and the reset of Gymnasium's own environment."""
    environment = tf_py_environment.TFPyEnvironment(cart_pole())
    environment.seed(3)
    agent = agents.RandomAgent(
        environment.time_step_spec(), environment.action_spec(), seed=0
    )
    actor_loop.ActorLoop(environment, agent, [], seed=0)
    expected, _ = gymnasium.make("CartPole-v1").reset(seed=3)
    np.testing.assert_array_equal(environment.reset().observation[0], expected)


def test_an_environment_that_cannot_be_seeded_is_trained_in():
    class Fixed(testing.CountingEnvironment):
        def seed(self, seed):
            raise NotImplementedError

    environment = tf_py_environment.TFPyEnvironment(Fixed(3))
    assert after_some_steps(environment, 0).shape[0] == 1
    with pytest.raises(NotImplementedError, match="cannot be seeded"):
        tf_environment.TFEnvironment.seed(environment, 0)
