"""RPO: means that are perturbed in updates alone."""

import numpy as np
import pytest
import tensorflow as tf

from tests.agents.on_policy.rollouts import collect
from tests.agents.ppo.test_ppo_agent import CHOICE, FORCE, make
from tfrl.agents.ppo import rpo
from tfrl.specs import tensor_spec
from tfrl.trajectories import time_step as ts
from tfrl.trajectories import trajectory

WIDE = tensor_spec.BoundedTensorSpec([2], tf.float32, [-1, -2], [1, 6])
UNBOUNDED = tf.TensorSpec([1], tf.float32)
SEED = tf.constant([1, 2], tf.int64)


def test_the_noise_is_uniform_in_units_of_half_the_range():
    actions = {"a": tf.zeros([50, 40, 2]), "b": tf.ones([50, 40, 1])}
    moved = rpo.perturbed(actions, {"a": WIDE, "b": UNBOUNDED}, 0.5, SEED)
    noise = np.concatenate([moved["a"] / [1, 4], moved["b"] - 1.0], axis=-1)
    assert np.abs(noise).max() <= 0.5
    np.testing.assert_allclose(noise.std((0, 1)), 1 / np.sqrt(12), rtol=0.05)
    np.testing.assert_allclose(noise.mean((0, 1)), 0, atol=0.02)
    again = rpo.perturbed(actions, {"a": WIDE, "b": UNBOUNDED}, 0.5, SEED)
    np.testing.assert_array_equal(moved["a"], again["a"])


def test_ratios_are_those_of_policies_with_moved_means():
    """The log ratio of N(mu + z, s) to N(mu, s) is (2 (a - mu) z - z^2) / (2 s^2)."""
    agent = make(FORCE, rpo_alpha=0.3, seed=4, num_epochs=1)
    frames, _ = collect(agent, "fmmm")
    data = agent._prepare(frames)
    distribution = agent._distribution(data)
    own = tf.constant([4, 0], tf.int64)
    z = data.actions - rpo.perturbed(data.actions, FORCE, 0.3, own)
    mean, stddev = distribution.mean().numpy(), distribution.stddev().numpy()
    centred = data.actions.numpy() - mean
    log_ratio = ((2 * centred * z - z**2) / (2 * stddev**2)).numpy().sum(-1)
    info = agent.loss(frames, training=True)
    valid = data.valid.numpy()
    approx = np.where(valid, np.exp(log_ratio) - 1 - log_ratio, 0).sum() / valid.sum()
    np.testing.assert_allclose(info.extra.approx_kl, approx, rtol=1e-4)


def test_only_updates_are_perturbed_and_each_anew():
    agent = make(FORCE, rpo_alpha=0.5, seed=4, num_epochs=1)
    frames, _ = collect(agent, "fmmm")
    np.testing.assert_allclose(agent.loss(frames).extra.approx_kl, 0, atol=1e-6)
    np.testing.assert_allclose(agent.diagnose(frames)["approx_kl"], 0, atol=1e-6)
    first = agent.loss(frames, training=True).extra.approx_kl
    assert first > 1e-3
    agent.train_step_counter.assign_add(1)
    assert agent.loss(frames, training=True).extra.approx_kl != first


def test_wrong_arguments():
    with pytest.raises(ValueError, match="rpo_alpha: expected 0, since the actor"):
        make(CHOICE, rpo_alpha=0.5)
    with pytest.raises(ValueError, match=r"rpo_alpha: .*-1"):
        make(FORCE, rpo_alpha=-1.0)


@pytest.mark.slow
def test_a_compiled_update_is_a_plain_one():
    plain, compiled = (
        make(FORCE, rpo_alpha=0.5, seed=4, num_epochs=1, importance_ratio_clipping=0.2)
        for _ in range(2)
    )
    frames, _ = collect(plain, "fmmm")
    plain.train(frames)
    tf.function(compiled.train, autograph=False, jit_compile=True)(frames)
    for one, other in zip(plain.variables(), compiled.variables(), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)


def test_it_learns_the_best_force():
    """The reward is -(a - 0.4)^2 in each component."""
    agent = make(
        FORCE,
        rpo_alpha=0.3,
        seed=4,
        num_epochs=4,
        importance_ratio_clipping=0.2,
        discount_factor=0.0,
    )
    train = tf.function(agent.train, autograph=False)
    rng = np.random.default_rng(0)
    policy = agent.collect_policy
    for _ in range(100):
        observed = tf.constant(rng.normal(size=[64, 2]), tf.float32)
        step = ts.restart(observed, batch_size=64)
        acted = policy.action(step)
        reward = -tf.reduce_sum(tf.square(acted.action - 0.4), axis=-1)
        later = ts.termination(observed, reward)
        first = trajectory.from_transition(step, acted, later)
        last = first._replace(
            step_type=later.step_type, next_step_type=step.step_type, reward=0 * reward
        )
        train(tf.nest.map_structure(lambda *x: tf.stack(x, axis=1), first, last))
    action = agent.policy.action(ts.restart(tf.zeros([1, 2]), batch_size=1)).action
    np.testing.assert_allclose(action, [[0.4, 0.4]], atol=0.15)
