"""Random network distillation: its rewards and its loss, against NumPy."""

import numpy as np
import pytest
import tensorflow as tf

from tests.agents.on_policy.rollouts import collect
from tests.agents.ppo.test_ppo_agent import CHOICE, MINIBATCHES, OBSERVATION, make
from tfrl import networks
from tfrl.agents.ppo import RandomNetworkDistillation
from tfrl.agents.ppo import rnd as rnd_lib
from tfrl.specs import tensor_spec
from tfrl.utils import variables


def network(units, seed):
    return networks.EncodingNetwork(OBSERVATION, fc_layer_params=units, seed=seed)


def rnd(coefficient=0.5, num_envs=2, predictor=None):
    predictor = predictor or network((5, 4), 2)
    return RandomNetworkDistillation(
        network((4,), 1), predictor, coefficient, num_envs, gamma=0.9
    )


def dense(net, x):
    """The output of a network of dense layers, in float64."""
    weights = [v.numpy().astype(np.float64) for v in net.variables]
    for kernel, bias in zip(weights[::2], weights[1::2], strict=True):
        x = np.maximum(x @ kernel + bias, 0)
    return x


def errors(module, observation, seen):
    """The errors for normalized observations; `seen` are those of the statistics."""
    rows = seen.reshape([-1, 2]).astype(np.float64)
    x = (observation - rows.mean(0)) / np.sqrt(rows.var(0) + 1e-3)
    x = np.clip(x, -5, 5)
    difference = dense(module.predictor, x) - dense(module.target, x)
    return np.mean(difference**2, axis=-1)


def test_rewards_are_scaled_errors_of_the_reached_observations():
    module = rnd()
    frames, _ = collect(make(), "fmmM", "fmMb")
    observation = frames.observation.numpy()
    # The first rewards come without statistics: means are 0 and variances 1.
    x = np.clip(observation / np.sqrt(1 + 1e-3), -5, 5).astype(np.float64)
    before = dense(module.predictor, x) - dense(module.target, x)
    # The epochs between rewards and statistics do not change the latter.
    for variable in module.predictor.trainable_variables:
        variable.assign(0.9 * variable)
    module.update(frames)
    each = np.mean(before**2, axis=-1)
    # The returns of the errors do not end with episodes.
    returns, total = [], np.zeros(2)
    for t in range(4):
        total = each[:, t] + 0.9 * total
        returns.append(total)
    scale = 1 / np.sqrt(np.var(returns) + 1e-8)
    each = errors(module, observation, observation)
    expected = np.concatenate([0.5 * scale * each[:, 1:], np.zeros([2, 1])], axis=1)
    np.testing.assert_allclose(module.rewards(observation), expected, rtol=1e-4)


def test_advantages_have_both_rewards():
    with_rnd, without = make(rnd=rnd(num_envs=1), **MINIBATCHES), make(**MINIBATCHES)
    frames, _ = collect(without, "fmmMbfm")
    bonus = with_rnd._rnd.rewards(frames.observation)
    assert np.all(bonus[:, :-1] > 0)
    data = with_rnd.preprocess_sequence(frames)
    expected = without.preprocess_sequence(
        frames._replace(reward=frames.reward + bonus)
    )
    np.testing.assert_allclose(
        data.policy_info["advantage"], expected.policy_info["advantage"], rtol=1e-5
    )
    np.testing.assert_array_equal(data.reward, frames.reward[:, :-1])


@pytest.mark.parametrize("jit", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_updates_train_the_predictor_alone_on_all_frames(jit):
    agent = make(rnd=rnd(num_envs=1), num_epochs=1, use_gae=True)
    frames, _ = collect(agent, "fmMbfm")
    observation = frames.observation.numpy()[:, :-1]
    module = agent._rnd
    loss = agent.loss(frames).extra.distillation_loss
    # Without statistics, means are 0 and variances 1.
    x = np.clip(observation / np.sqrt(1 + 1e-3), -5, 5)
    difference = dense(module.predictor, x) - dense(module.target, x)
    np.testing.assert_allclose(loss, np.mean(difference**2), rtol=1e-5)
    fixed = [v.numpy() for v in module.target.variables]
    step = tf.function(agent.train, autograph=False, jit_compile=jit)
    before = agent.loss(frames).loss
    for _ in range(3):
        step(frames)
    assert agent.loss(frames).extra.distillation_loss < loss
    assert agent.loss(frames).loss != before
    for one, other in zip(fixed, module.target.variables, strict=True):
        np.testing.assert_array_equal(one, other)
    # What changes is in a checkpoint of the agent.
    held = {id(v) for v in agent.variables()}
    assert all(id(v) in held for v in variables.tracked_variables(module))


def test_the_predictor_learns_from_weighted_frames_without_padding():
    agent = make(rnd=rnd(num_envs=3), num_epochs=1, use_gae=True)
    frames, _ = collect(agent, "fmMbfmm", "fmMb000", "mmmmmmm")
    x = frames.observation.numpy()[:, :-1] / np.sqrt(1 + 1e-3)
    module = agent._rnd
    each = np.mean(
        (dense(module.predictor, x.clip(-5, 5)) - dense(module.target, x.clip(-5, 5)))
        ** 2,
        axis=-1,
    )
    counts = np.array([[1.0] * 6, [1, 1, 1, 1, 0, 0], [1] * 6])
    weights = np.array([2.0, 1.0, 0.0])
    found = agent.loss(frames, weights=tf.constant(weights, tf.float32))
    expected = np.mean(each * counts * weights[:, np.newaxis])
    np.testing.assert_allclose(found.extra.distillation_loss, expected, rtol=1e-5)
    # Weights of 0 change nothing.
    before = [v.numpy() for v in module.predictor.variables]
    agent.train(frames, weights=tf.zeros([3]))
    for one, other in zip(before, module.predictor.variables, strict=True):
        np.testing.assert_array_equal(one, other)


def test_choices_are_one_hot_vectors_and_pictures_stay_pictures():
    spec = {
        "cell": tensor_spec.BoundedTensorSpec([], tf.int64, 2, 4),
        "picture": tensor_spec.BoundedTensorSpec([5, 5, 1], tf.uint8, 0, 255),
        "speed": tf.TensorSpec([2], tf.float64),
    }
    given = rnd_lib.network_spec(spec)
    shapes = {name: (leaf.shape, leaf.dtype) for name, leaf in given.items()}
    assert shapes == {
        "cell": ([3], tf.float32),
        "picture": ([5, 5, 1], tf.float32),
        "speed": ([2], tf.float32),
    }
    assert networks.observation_encoder(given["picture"])["conv_layer_params"]


@pytest.mark.parametrize("dtype", ["float32", "mixed_bfloat16"])
def test_errors_of_choices_are_those_of_their_vectors(dtype):
    spec = tensor_spec.BoundedTensorSpec([], tf.int64, 2, 4)
    target, predictor = (
        networks.EncodingNetwork(
            rnd_lib.network_spec(spec), fc_layer_params=units, seed=1, dtype=dtype
        )
        for units in [(4,), (5, 4)]
    )
    module = RandomNetworkDistillation(target, predictor, 1.0, 2, observation_spec=spec)
    cells = tf.constant([[2, 3], [4, 2]], tf.int64)
    x = np.eye(3)[cells.numpy() - 2] / np.sqrt(1 + 1e-3)
    expected = np.mean((dense(predictor, x) - dense(target, x)) ** 2, axis=-1)
    found = module.errors(cells)
    assert found.dtype == tf.float32
    tolerance = 1e-5 if dtype == "float32" else 0.05
    np.testing.assert_allclose(found, expected, tolerance)


def test_wrong_arguments():
    with pytest.raises(ValueError, match=r"coefficient: .*-1"):
        rnd(-1.0)
    with pytest.raises(ValueError, match="predictor: its output is"):
        rnd(predictor=network((5,), 2))


def test_without_it_the_loss_is_0():
    agent = make(CHOICE, num_epochs=1)
    frames, _ = collect(agent, "fm")
    assert agent.loss(frames).extra.distillation_loss == 0
