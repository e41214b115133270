"""`RandomTFPolicy`: uniform actions, masks, log-probabilities."""

import numpy as np
import pytest
import tensorflow as tf

from tfrl.policies import random_tf_policy
from tfrl.specs import tensor_spec
from tfrl.trajectories import time_step as ts

DISCRETE = tensor_spec.BoundedTensorSpec([], tf.int64, 3, 5)
CONTINUOUS = tensor_spec.BoundedTensorSpec([2], tf.float32, [-1.0, 0.0], [1.0, 4.0])
MASKED = {"x": tf.TensorSpec([], tf.float32), "mask": tf.TensorSpec([3], tf.int32)}


def split(observation):
    return observation["x"], observation["mask"]


def make(action_spec, observation=MASKED, **kwargs):
    return random_tf_policy.RandomTFPolicy(
        ts.time_step_spec(observation), action_spec, **{"seed": 0, **kwargs}
    )


def step(batch, mask=(1, 1, 1)):
    observation = {"x": tf.zeros([batch]), "mask": tf.tile([list(mask)], [batch, 1])}
    return ts.restart(observation, batch_size=batch)


def test_discrete_actions_cover_the_bounds_alike():
    action = make(DISCRETE).action(step(3000)).action
    assert action.dtype == tf.int64
    frequencies = np.bincount(action.numpy() - 3) / 3000
    np.testing.assert_allclose(frequencies, [1 / 3] * 3, atol=0.04)


def test_nested_actions_have_the_structure_and_bounds_of_the_spec():
    spec = {"d": DISCRETE, "c": [CONTINUOUS]}
    action = make(spec).action(step(500)).action
    continuous = action["c"][0].numpy()
    assert continuous.shape == (500, 2)
    np.testing.assert_allclose(continuous.min(0), [-1.0, 0.0], atol=0.1)
    np.testing.assert_allclose(continuous.max(0), [1.0, 4.0], atol=0.1)


def test_an_unbatched_step_gives_an_unbatched_action():
    time_step = tf.nest.map_structure(lambda t: t[0], step(1))
    assert make(DISCRETE).action(time_step).action.shape == []


def test_only_valid_actions_are_drawn():
    policy = make(DISCRETE, observation_and_action_constraint_splitter=split)
    actions = policy.action(step(2000, mask=(1, 0, 1))).action.numpy()
    np.testing.assert_allclose(np.mean(actions == 3), 0.5, atol=0.05)
    assert set(actions) == {3, 5}


def test_masked_actions_keep_the_shape_of_the_spec():
    spec = tensor_spec.BoundedTensorSpec([1], tf.int32, 0, 2)
    policy = make(spec, observation_and_action_constraint_splitter=split)
    action = policy.action(step(4, mask=(0, 1, 0))).action
    np.testing.assert_array_equal(action, [[1]] * 4)


def test_a_stationary_mask_and_the_observed_one_are_combined():
    policy = make(
        DISCRETE,
        observation_and_action_constraint_splitter=split,
        stationary_mask=[1, 1, 0],
    )
    actions = policy.action(step(50, mask=(0, 1, 1))).action.numpy()
    assert set(actions) == {4}


def test_log_probability_counts_the_valid_actions():
    policy = make(
        DISCRETE,
        observation_and_action_constraint_splitter=split,
        emit_log_probability=True,
    )
    info = policy.action(step(2, mask=(1, 0, 1))).info
    np.testing.assert_allclose(info.log_probability, np.log([0.5, 0.5]), rtol=1e-6)


def test_log_probability_is_the_uniform_density():
    spec = {"d": DISCRETE, "c": CONTINUOUS}
    info = make(spec, emit_log_probability=True).action(step(2)).info
    np.testing.assert_allclose(
        info.log_probability["d"], np.log([1 / 3] * 2), rtol=1e-6
    )
    np.testing.assert_allclose(
        info.log_probability["c"], np.log([1 / 8] * 2), rtol=1e-6
    )


def test_info_is_sampled_from_its_spec():
    info_spec = {"value": tensor_spec.BoundedTensorSpec([], tf.float32, 2.0, 3.0)}
    info = make(DISCRETE, info_spec=info_spec).action(step(20)).info
    assert info["value"].shape == [20]
    assert np.all((info["value"] >= 2.0) & (info["value"] <= 3.0))


def test_a_mask_for_continuous_actions_is_not_implemented():
    with pytest.raises(NotImplementedError, match="one bounded integer spec"):
        make(CONTINUOUS, observation_and_action_constraint_splitter=split)


def test_a_stationary_mask_of_the_wrong_length_is_an_error():
    with pytest.raises(ValueError, match=r"stationary_mask: .* 3 actions"):
        make(DISCRETE, stationary_mask=[1, 0])


def test_seeds_reproduce():
    def actions(seed):
        policy = make(DISCRETE, seed=seed)
        return [policy.action(step(30)).action.numpy() for _ in range(2)]

    np.testing.assert_array_equal(actions(1), actions(1))
    assert not np.array_equal(actions(1), actions(2))


def test_has_no_variables_and_no_distribution():
    policy = make(DISCRETE)
    assert policy.variables() == []
    with pytest.raises(NotImplementedError, match=r"RandomTFPolicy\.distribution"):
        policy.distribution(step(1))


def test_works_in_a_function_with_an_unknown_batch_size():
    policy = make({"d": DISCRETE, "c": CONTINUOUS})
    specs = tf.nest.map_structure(
        lambda s: tf.TensorSpec([None, *s.shape], s.dtype), policy.time_step_spec
    )
    action = tf.function(policy.action, input_signature=[specs])
    assert action(step(3)).action["c"].shape == [3, 2]
    assert action(step(4)).action["d"].shape == [4]


def test_actions_without_bounds_are_of_usual_size():
    actions = make(tf.TensorSpec([], tf.float32)).action(step(500)).action.numpy()
    assert np.all(np.abs(actions) <= 1)
    assert np.ptp(actions) > 1.5
