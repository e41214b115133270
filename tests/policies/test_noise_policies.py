"""`GaussianPolicy` and `OUNoisePolicy`: noise on continuous actions."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from tfrl.policies import (
    fixed_policy,
    gaussian_policy,
    greedy_policy,
    ou_noise_policy,
    policy_saver,
    tf_policy,
)
from tfrl.specs import tensor_spec
from tfrl.trajectories import policy_step
from tfrl.trajectories import time_step as ts

TIME_STEP = ts.time_step_spec(tf.TensorSpec([], tf.float32))
ACTION = {
    "a": tensor_spec.BoundedTensorSpec([2], tf.float32, -1.0, 1.0),
    "b": tensor_spec.BoundedTensorSpec([], tf.float64, -1.0, 1.0),
}
DISCRETE = tensor_spec.BoundedTensorSpec([], tf.int32, 0, 1)
BOTH = [gaussian_policy.GaussianPolicy, ou_noise_policy.OUNoisePolicy]


def fixed(value=0.0, action_spec=ACTION):
    actions = tf.nest.map_structure(lambda s: np.full(s.shape, value), action_spec)
    return fixed_policy.FixedPolicy(
        actions, TIME_STEP, action_spec, emit_log_probability=False
    )


def step(batch):
    return ts.restart(tf.zeros([batch]), batch_size=batch)


class Stateful(tf_policy.TFPolicy):
    """Acts with 0; its state counts, from 10."""

    def __init__(self):
        super().__init__(TIME_STEP, ACTION["b"], tf.TensorSpec([], tf.int32))

    def _variables(self):
        return []

    def _get_initial_state(self, batch_size):
        return tf.fill([batch_size], 10)

    def _action(self, time_step, policy_state, seed):
        action = tf.zeros(tf.shape(time_step.step_type), tf.float64)
        return policy_step.PolicyStep(action, policy_state + 1)


def gaussian(scale=1.0, **kwargs):
    return gaussian_policy.GaussianPolicy(fixed(), scale, **kwargs)


def test_gaussian_noise_has_its_scale_and_differs_between_all_entries():
    action = gaussian(0.5, clip=False, seed=1).action(step(4000)).action
    noise = np.concatenate([action["a"], action["b"][:, np.newaxis]], axis=1)
    np.testing.assert_allclose(noise.mean(0), [0.0] * 3, atol=0.03)
    np.testing.assert_allclose(np.cov(noise.T), 0.25 * np.eye(3), atol=0.02)


def test_the_scale_may_be_read_at_each_action():
    scale = tf.Variable(1.0)
    action = tf.function(gaussian(lambda: scale, clip=False).action)
    assert np.abs(action(step(1), (), 3).action["a"]).max() > 0
    scale.assign(0.0)
    np.testing.assert_array_equal(action(step(1), (), 3).action["a"], [[0.0, 0.0]])


def test_the_scale_may_be_a_schedule_of_a_step():
    counter = tf.Variable(0, dtype=tf.int64)
    decay = keras.optimizers.schedules.PolynomialDecay(1.0, 2, 0.0)
    action = tf.function(gaussian(decay, clip=False, step=counter).action)
    first = action(step(1), (), 3).action["a"].numpy()
    counter.assign(1)
    np.testing.assert_allclose(action(step(1), (), 3).action["a"], first / 2, rtol=1e-6)
    with pytest.raises(ValueError, match=r"step: got None with .* as scale"):
        gaussian(decay)


@pytest.mark.parametrize("policy_class", BOTH)
@pytest.mark.parametrize("batch", [1, 7])
def test_actions_keep_the_dtypes_and_bounds_and_are_traced_once(policy_class, batch):
    action = tf.function(policy_class(fixed(0.9), 5.0, seed=1).action)
    for _ in range(3):
        result = action(step(batch)).action
    assert result["a"].shape == [batch, 2]
    assert result["b"].dtype == tf.float64
    assert np.abs(result["a"]).max() <= 1.0
    assert action.experimental_get_tracing_count() == 1


@pytest.mark.parametrize("policy_class", BOTH)
def test_the_same_seed_gives_the_same_sequence(policy_class):
    def run(seed):
        policy = policy_class(fixed(), clip=False, seed=seed)
        return [policy.action(step(3)).action["a"].numpy() for _ in range(3)]

    np.testing.assert_array_equal(run(1), run(1))
    assert not np.array_equal(run(1), run(2))
    assert not np.array_equal(run(1)[0], run(1)[1])


@pytest.mark.parametrize("policy_class", BOTH)
def test_state_and_initial_state_are_the_wrapped_policys(policy_class):
    policy = policy_class(Stateful())
    np.testing.assert_array_equal(policy.get_initial_state(2), [10, 10])
    np.testing.assert_array_equal(policy.action(step(2)).state, [11, 11])


@pytest.mark.parametrize("policy_class", BOTH)
def test_the_greedy_action_is_without_noise(policy_class):
    policy = greedy_policy.GreedyPolicy(policy_class(fixed(0.25)))
    np.testing.assert_array_equal(policy.action(step(1)).action["a"], [[0.25, 0.25]])


@pytest.mark.parametrize("policy_class", BOTH)
def test_discrete_actions_are_refused(policy_class):
    with pytest.raises(ValueError, match=r"action_spec x: got dtype int32, expected "):
        policy_class(fixed(0, {"x": DISCRETE}))


@pytest.mark.parametrize("policy_class", BOTH)
def test_there_is_no_distribution(policy_class):
    with pytest.raises(NotImplementedError, match="has no distribution"):
        policy_class(fixed()).distribution(step(1))


def test_numbers_out_of_range_are_errors():
    with pytest.raises(ValueError, match=r"scale: .* got -1\.0"):
        gaussian(-1.0)
    with pytest.raises(ValueError, match=r"ou_stddev: .* got -1\.0"):
        ou_noise_policy.OUNoisePolicy(fixed(), ou_stddev=-1.0)
    with pytest.raises(ValueError, match=r"ou_damping: .* got 2\.0"):
        ou_noise_policy.OUNoisePolicy(fixed(), ou_damping=2.0)


def ou(**kwargs):
    return ou_noise_policy.OUNoisePolicy(fixed(), 0.2, 0.15, clip=False, **kwargs)


def test_ou_noise_is_correlated_in_time_and_not_between_entries():
    action = tf.function(ou(seed=1).action)
    noise = np.stack([action(step(2000)).action["a"].numpy() for _ in range(40)])
    now, after = noise[-2, :, 0], noise[-1, :, 0]
    np.testing.assert_allclose(np.corrcoef(now, after)[0, 1], 0.85, atol=0.03)
    np.testing.assert_allclose(after.std(), 0.2 / np.sqrt(1 - 0.85**2), rtol=0.06)
    between = np.corrcoef(after, noise[-1, :, 1])[0, 1]
    np.testing.assert_allclose(between, 0.0, atol=0.07)


@pytest.mark.parametrize("policy_class", BOTH)
def test_a_single_step_gets_a_single_action(policy_class):
    one = tf.nest.map_structure(lambda t: t[0], step(1))
    action = policy_class(fixed()).action(one).action
    assert action["a"].shape == [2]
    assert action["b"].shape == []


def test_one_ou_policy_serves_several_batch_sizes_in_one_function():
    policy = ou(seed=1)
    action = tf.function(policy.action)
    first = action(step(2)).action["b"].numpy()
    assert action(step(5)).action["b"].shape == [5]
    # The noise for two entries went on from where it was.
    second = action(step(2), (), 9).action["b"].numpy()
    again = ou(seed=1)
    again.action(step(2))
    np.testing.assert_allclose(
        again.action(step(2), (), 9).action["b"], second, rtol=1e-6
    )
    assert not np.array_equal(first, second)


def test_a_checkpoint_holds_the_ou_noise(tmp_path):
    policy = ou(seed=1)
    policy.action(step(2))
    path = tf.train.Checkpoint(policy=policy).write(str(tmp_path / "policy"))
    expected = policy.action(step(2)).action["a"].numpy()
    resumed = ou(seed=2)
    # The noise is made with the first action, and restored then.
    tf.train.Checkpoint(policy=resumed).read(path)
    np.testing.assert_array_equal(resumed.action(step(2)).action["a"], expected)


@pytest.mark.slow
def test_saved_ou_noise_goes_on(tmp_path):
    policy_saver.PolicySaver(ou(), seed=4).save(str(tmp_path))
    loaded = tf.saved_model.load(str(tmp_path))
    actions = [loaded.action(step(2)).action["a"].numpy() for _ in range(2)]
    # Saved for any batch size, the entries share one noise.
    assert len(np.unique(actions)) == 4


ASYMMETRIC = {
    "a": tensor_spec.BoundedTensorSpec([2], tf.float32, [0.0, -4.0], [1.0, 4.0]),
    "b": tensor_spec.BoundedTensorSpec([], tf.float64, 0.0, 10.0),
}


@pytest.mark.parametrize("policy_class", BOTH)
def test_noise_in_units_of_half_the_range(policy_class):
    policies = [
        policy_class(fixed(0.5, ASYMMETRIC), 0.1, clip=False, scaled_to_spec=scaled)
        for scaled in (False, True)
    ]
    plain, scaled = (p.action(step(3), (), 7).action for p in policies)
    half_range = {"a": np.array([0.5, 4.0]), "b": 5.0}
    for name, factor in half_range.items():
        np.testing.assert_allclose(
            scaled[name] - 0.5, (plain[name] - 0.5) * factor, rtol=1e-5, atol=1e-6
        )


def test_noise_cannot_be_in_units_of_an_infinite_range():
    spec = tensor_spec.BoundedTensorSpec([], tf.float32, 0.0, np.inf)
    with pytest.raises(ValueError, match="scaled_to_spec: got True"):
        gaussian_policy.GaussianPolicy(fixed(0.0, spec), scaled_to_spec=True)


@pytest.mark.parametrize("batch", [3, None])
def test_ou_noise_starts_from_zero_in_each_episode(batch):
    spec = ts.time_step_spec(tf.TensorSpec([], tf.float32))

    def act(policy, step_types, seed):
        signature = tf.nest.map_structure(
            lambda s: tf.TensorSpec([batch, *s.shape], s.dtype), spec
        )
        function = tf.function(
            lambda time_step: policy.action(time_step, (), seed).action["a"],
            input_signature=[signature],
        )
        time_step = step(3)._replace(step_type=tf.constant(step_types, tf.int32))
        return function(time_step).numpy()

    policy, new = ou(reset_at_episode_start=True), ou()
    act(policy, [0, 0, 0], 1)
    before = act(policy, [1, 1, 1], 2)
    after = act(policy, [1, 0, 1], 3)
    first = act(new, [1, 1, 1], 3)
    if batch is None:
        # Only one noise for all entries, which any first step resets.
        np.testing.assert_allclose(after, first, rtol=1e-6)
    else:
        np.testing.assert_allclose(after[1], first[1], rtol=1e-6)
        np.testing.assert_allclose(
            after[[0, 2]], first[[0, 2]] + 0.85 * before[[0, 2]], rtol=1e-5
        )


def test_a_prepared_policy_is_restored_before_its_first_action(tmp_path):
    policy = ou(seed=1)
    policy.action(step(2))
    path = tf.train.Checkpoint(policy=policy).write(str(tmp_path / "policy"))
    resumed = greedy_policy.GreedyPolicy(ou(seed=2))
    resumed.prepare(2)
    restored = tf.train.Checkpoint(policy=resumed.wrapped_policy).read(path)
    restored.assert_existing_objects_matched()
    np.testing.assert_array_equal(
        resumed.wrapped_policy.action(step(2), (), 5).action["a"],
        policy.action(step(2), (), 5).action["a"],
    )
