"""Bandit problems: rounds, seeds, compiled as plain, and their regret."""

import itertools

import numpy as np
import pytest
import tensorflow as tf

from tests.pairs import some_slow
from tfrl.bandits import environments
from tfrl.bandits.environments import problems, rounds
from tfrl.environments import native


def _played(environment, num_rounds, jit_compile):
    size = environment.batch_size

    @tf.function(jit_compile=jit_compile, autograph=False)
    def play():
        observations = [environment.reset().observation]
        rewards = []
        for i in range(num_rounds):
            reached = environment.step(tf.fill([size], i % 2))
            observations.append(reached.observation)
            rewards.append(reached.reward)
        return observations, rewards

    return [x.numpy() for x in tf.nest.flatten(play())]


# The others compile for as long.
@pytest.mark.parametrize(
    "name", some_slow(environments.names(), fast=["PaddedArmsBandit-v0"])
)
def test_compiled_rounds_are_those_of_the_plain_graph(name):
    plain, compiled = (
        _played(environments.load(name, 3, seed=5), 4, jit) for jit in (False, True)
    )
    for x, y in zip(plain, compiled, strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-5, atol=1e-5)


def test_every_step_ends_a_round():
    bandit = environments.load("LinearBandit-v0", 2, seed=0)
    assert bandit.is_bandit
    assert bandit.reset().is_first().numpy().all()
    for _ in range(2):
        reached = bandit.step([0, 1])
        assert reached.is_last().numpy().all()
        assert (reached.discount.numpy() == 0).all()


def test_other_seeds_give_other_rounds():
    first, again, other = (
        environments.load("WheelBandit-v0", 4, seed=s).reset().observation.numpy()
        for s in (1, 1, 2)
    )
    np.testing.assert_array_equal(first, again)
    assert (first != other).all()


def test_a_saved_state_continues_with_the_same_rounds():
    bandit = environments.load("DriftingBandit-v0", 2, seed=0)
    bandit.reset()
    bandit.step([0, 1])
    state = bandit.get_state()
    expected = [bandit.step([1, 2]).reward.numpy() for _ in range(3)]
    bandit.set_state(state)
    found = [bandit.step([1, 2]).reward.numpy() for _ in range(3)]
    np.testing.assert_array_equal(found, expected)
    for wrong in (state[:-1], None, environments.load("WheelBandit-v0", 2).get_state()):
        with pytest.raises(
            ValueError, match=r"^state: got arrays of the shapes .*, exp"
        ):
            bandit.set_state(wrong)


def test_bernoulli_rewards_have_their_means():
    bandit = native.NativeEnvironment(problems.bernoulli([0.2, 0.9]), 20_000, seed=0)
    bandit.reset()
    rewards = bandit.step(tf.repeat([0, 1], 10_000)).reward.numpy()
    assert set(np.unique(rewards)) == {0.0, 1.0}
    np.testing.assert_allclose(rewards.reshape([2, -1]).mean(1), [0.2, 0.9], atol=0.02)


def test_linear_rewards_are_products_of_context_and_parameters():
    theta = np.array([[1.0, 0.0, 2.0], [0.0, -1.0, 1.0]])
    bandit = native.NativeEnvironment(problems.linear(theta, deviation=0.0), 5, seed=0)
    context = bandit.reset().observation.numpy()
    assert (context == np.round(context)).all()
    actions = np.array([0, 1, 0, 1, 1])
    reward = bandit.step(actions).reward.numpy()
    np.testing.assert_allclose(reward, (context * theta[actions]).sum(1), rtol=1e-6)


def test_the_state_has_the_regret_of_the_last_action():
    theta = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    bandit = native.NativeEnvironment(problems.linear(theta), 6, seed=0)
    means = bandit.reset().observation.numpy() @ theta.T
    bandit.step(tf.ones([6], tf.int32))
    regret = bandit.physical_state()["regret"].numpy()
    np.testing.assert_allclose(regret, means.max(1) - means[:, 1], rtol=1e-6)


def test_the_wheel_has_one_far_better_arm_in_each_outer_quadrant():
    bandit = native.NativeEnvironment(problems.wheel(delta=0.5), 4000, seed=0)
    context = bandit.reset().observation.numpy()
    means = bandit.physical_state()["round"].means.numpy()
    is_outside = np.linalg.norm(context, axis=1) > 0.5
    assert is_outside.mean() == pytest.approx(0.75, abs=0.03)
    assert (means[~is_outside].argmax(1) == 0).all()
    signs = {(True, True): 1, (True, False): 2, (False, True): 3, (False, False): 4}
    best = [signs[tuple(x)] for x in context[is_outside] >= 0]
    np.testing.assert_array_equal(means[is_outside].argmax(1), best)


def test_a_coordinate_of_the_wheel_that_is_0_counts_as_positive():
    dynamics = problems.wheel(delta=0.1)
    # The angle 0 and a radius of 0.5.
    state = dynamics.initial(tf.constant([[0.0, 0.25]]))
    np.testing.assert_array_equal(state["round"].observation, [[0.5, 0.0]])
    assert state["round"].means.numpy().argmax() == 1


def test_padding_arms_are_never_the_best():
    bandit = environments.load("PaddedArmsBandit-v0", 200, seed=0)
    number = bandit.reset().observation["num_actions"].numpy()
    assert set(number) == {1, 2, 3, 4, 5}
    means = bandit.physical_state()["round"].means.numpy()
    assert (means.argmax(1) < number).all()


def test_all_members_share_parameters_that_drift_a_little_in_each_round():
    bandit = environments.load("DriftingBandit-v0", 2, seed=0)
    bandit.reset()
    before = bandit.physical_state()["world"].numpy()
    bandit.step([0, 0])
    after = bandit.physical_state()["world"].numpy()
    np.testing.assert_array_equal(after[0], after[1])
    assert 0 < np.abs(after - before).max() < 0.1


def test_piecewise_parameters_stay_until_they_are_drawn_again():
    change = problems.piecewise(2, 3, interval=4.0)
    bandit = native.NativeEnvironment(problems.linear(change=change), 1, seed=0)
    bandit.reset()
    worlds = []
    for _ in range(40):
        bandit.step([0])
        worlds.append(bandit.physical_state()["world"].numpy())
    moved = [x != y for x, y in itertools.pairwise(worlds)]
    assert all(each.all() or not each.any() for each in moved)
    assert 4 <= sum(each.all() for each in moved) <= 18


def test_classification_rewards_the_class_of_the_row():
    features, labels = np.eye(3), np.array([2, 0, 1])
    bandit = native.NativeEnvironment(problems.classification(features, labels), 9, 0)
    context = bandit.reset().observation.numpy()
    reward = bandit.step(labels[context.argmax(1)]).reward.numpy()
    np.testing.assert_array_equal(reward, 1.0)


def test_a_user_writes_a_bandit_as_one_function():
    def draw(random, world):
        return rounds.Round(random, tf.concat([random, 1 - random], 1), random * 0)

    dynamics = rounds.dynamics(draw, tf.TensorSpec([1], tf.float32), 2, 1)
    bandit = native.NativeEnvironment(dynamics, 3, seed=0)
    context = bandit.reset().observation.numpy()
    reward = bandit.step([1, 1, 1]).reward.numpy()
    np.testing.assert_allclose(reward, 1 - context[:, 0], rtol=1e-6)


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: problems.wheel(delta=1.0), "delta"),
        (lambda: problems.wheel(mu_base=[1.0]), "mu_base: got 1 numbers, expected 5"),
        (lambda: problems.bernoulli([0.5, 1.5]), r"means\[1\]"),
        (lambda: problems.classification(np.eye(2), [0]), "labels: got 1"),
        (
            lambda: problems.classification(np.eye(2), [1, 2]),
            "labels: got classes from 1 on, expected them from 0 on",
        ),
        (
            lambda: problems.classification(np.eye(2), [0, 1.5]),
            "labels: got 1.5, expected whole numbers from 0, each of an arm",
        ),
        (
            lambda: problems.classification(np.eye(2), [1, 2], np.eye(2)),
            "labels: got 2, expected whole numbers from 0 to 1",
        ),
        (lambda: environments.load("Nothing-v0"), "expected one of 'BernoulliBandit"),
    ],
)
def test_wrong_numbers_are_named(make, text):
    with pytest.raises(ValueError, match=text):
        make()
