"""The cross-entropy method finds the best action, for each row by itself."""

import numpy as np
import pytest
import tensorflow as tf

from tests.pairs import some_slow
from tfrl import networks, policies
from tfrl.policies.samplers import qtopt_cem_actions_sampler_continuous as continuous
from tfrl.policies.samplers import (
    qtopt_cem_actions_sampler_continuous_and_one_hot as with_kinds,
)
from tfrl.policies.samplers import qtopt_cem_actions_sampler_hybrid as hybrid
from tfrl.specs import tensor_spec
from tfrl.trajectories import policy_step
from tfrl.trajectories import time_step as ts

OBSERVATION = tf.TensorSpec([2], tf.float32)
ACTION = tensor_spec.BoundedTensorSpec([2], tf.float32, [-1.0, 0.0], [1.0, 4.0])
OBSERVED = np.array([[0.5, 1.0], [-0.5, 3.0], [0.9, 5.0]], np.float32)


class Distance(networks.Network):
    """Q(s, a) = -|s - a|^2, the same for each action of a nest."""

    def call(self, inputs, step_type=None, network_state=()):
        observation, action = inputs
        return -sum(
            tf.reduce_sum((observation - tf.cast(a, tf.float32)) ** 2, axis=-1)
            for a in tf.nest.flatten(action)
        ), network_state


def make(action_spec=ACTION, sampler=None, **kwargs):
    if sampler is None:
        sampler = continuous.GaussianActionsSampler(action_spec)
    arguments = {"num_samples": 64, "num_iterations": 8, "seed": 1, **kwargs}
    return policies.CEMPolicy(
        ts.time_step_spec(OBSERVATION),
        action_spec,
        Distance((OBSERVATION, action_spec)),
        sampler,
        **arguments,
    )


def step(observed=OBSERVED):
    return ts.restart(tf.constant(observed), len(observed))


def test_it_finds_the_best_action_inside_the_bounds():
    expected = np.clip(OBSERVED, ACTION.minimum, ACTION.maximum)
    policy = make()
    np.testing.assert_allclose(policy.action(step()).action, expected, atol=0.05)
    greedy = policies.GreedyPolicy(policy).action(step()).action
    np.testing.assert_allclose(greedy, expected, atol=0.05)
    info = {"target_q": tf.TensorSpec([], tf.float32)}
    policy = make(info_spec=info, emit_log_probability=True)
    single = ts.TimeStep(*(np.asarray(x)[0] for x in step()))
    found = policy.action(single).info
    np.testing.assert_allclose(found["target_q"], 0, atol=0.01)
    assert found["log_probability"] == 0
    np.testing.assert_allclose(policy.action(single).action, expected[0], atol=0.05)


def test_a_row_s_action_depends_on_its_observation_and_the_seed_alone():
    policy = make(num_iterations=1)
    together = policy.action(step(), seed=7).action
    alone = policy.action(step(OBSERVED[1:2]), seed=7).action
    np.testing.assert_array_equal(together[1:2], alone)
    assert np.any(policy.action(step(), seed=8).action != together)
    greedy = policies.GreedyPolicy(policy)
    first, second = (greedy.action(step()).action for _ in range(2))
    np.testing.assert_array_equal(first, second)


@pytest.mark.slow
def test_a_loop_in_the_graph_and_constant_seeds_search_alike():
    policy = make(num_iterations=3)
    act = tf.function(lambda seed: policy.action(step(), seed=seed).action)
    seed = tf.constant([4, 0], tf.int64)
    np.testing.assert_allclose(
        act(seed), policy.action(step(), seed=4).action, rtol=1e-6
    )


def test_an_actor_s_action_is_taken_where_it_is_better():
    class Actor(policies.TFPolicy):
        def _action(self, time_step, policy_state, seed):
            better = tf.constant([[0.5, 1.0], [1.0, 0.0], [0.9, 4.0]])
            return policy_step.PolicyStep(better)

    actor = Actor(ts.time_step_spec(OBSERVATION), ACTION)
    policy = make(num_iterations=1, actor_policy=actor)
    action = policy.action(step()).action.numpy()
    np.testing.assert_array_equal(action[[0, 2]], np.float32([[0.5, 1.0], [0.9, 4.0]]))
    assert not np.array_equal(action[1], [1.0, 0.0])


def test_the_network_may_repeat_the_observations_itself():
    class Repeats(networks.Network):
        def call(self, inputs, step_type=None, network_state=()):
            observation, action = inputs
            if action.shape.rank == 3:
                observation = observation[:, tf.newaxis]
            return -tf.reduce_sum((observation - action) ** 2, axis=-1), network_state

    found = [
        policies.CEMPolicy(
            ts.time_step_spec(OBSERVATION),
            ACTION,
            Repeats((OBSERVATION, ACTION)),
            continuous.GaussianActionsSampler(ACTION),
            num_iterations=2,
            preprocess_state_action=each,
        )
        .action(step(), seed=3)
        .action
        for each in (True, False)
    ]
    np.testing.assert_allclose(*found, rtol=1e-6)


def test_the_first_distribution_is_the_middle_of_the_bounds_or_what_is_given():
    mean, var = make()._initial_params(3)
    np.testing.assert_array_equal(mean, [[0.0, 2.0]] * 3)
    np.testing.assert_array_equal(var, [[1.0, 4.0]] * 3)
    mean, var = make(init_mean=[0.5, 1], init_var=[0.1, 0.2])._initial_params(1)
    np.testing.assert_array_equal(mean, [[0.5, 1]])
    np.testing.assert_array_equal(var, np.float32([[0.1, 0.2]]))


def test_discrete_parts_are_truncated():
    spec = {"a": ACTION, "b": tensor_spec.BoundedTensorSpec([2], tf.int32, 0, 5)}
    policy = make(spec, hybrid.GaussianActionsSampler(spec), num_samples=256)
    action = policy.action(step(np.float32([[0.5, 3.0]]))).action
    np.testing.assert_allclose(action["a"], [[0.5, 3.0]], atol=0.1)
    assert action["b"].dtype == tf.int32
    assert action["b"].numpy()[0, 1] == 3


KINDS = {
    "kind": tensor_spec.BoundedTensorSpec([4], tf.int32, 0, 1),
    "move": tensor_spec.BoundedTensorSpec([2], tf.float32, 0.0, 1.0),
    "open": tensor_spec.BoundedTensorSpec([1], tf.float32, 0.0, 1.0),
}


def kinds_sampler(**kwargs):
    return with_kinds.GaussianActionsSampler(
        KINDS, [[], [], []], [["open"], ["kind"], ["move"]], **kwargs
    )


def ones(batch_size):
    return {
        name: tf.ones([batch_size, *spec.shape], tf.float32)
        for name, spec in KINDS.items()
    }


def test_each_kind_of_action_has_its_own_samples():
    samples = kinds_sampler().sample_batch_and_clip(9, ones(2), ones(2), seed=(1, 2))
    places = np.argmax(samples["kind"], axis=-1)
    np.testing.assert_array_equal(places, [[0, 0, 0, 1, 2, 3, 3, 3, 3]] * 2)
    np.testing.assert_array_equal(np.any(samples["open"], -1), places == 0)
    np.testing.assert_array_equal(np.any(samples["move"], -1), places == 3)


def test_functions_see_the_kind_of_an_action():
    seen = []

    def clip(actions, state):
        seen.append(actions["kind"].numpy())
        return actions

    sampler = with_kinds.GaussianActionsSampler(
        KINDS, [[clip], [], [clip]], [["open"], ["kind"], ["move"]]
    )
    sampler.sample_batch_and_clip(9, ones(2), {**ones(2), "kind": tf.zeros([2, 4])})
    np.testing.assert_array_equal(seen[0][:, :, 0], np.ones([2, 3]))


def test_a_field_is_refitted_to_the_best_samples_of_its_own_kind():
    samples = {"kind": tf.zeros([1, 9, 4]), "move": tf.zeros([1, 9, 2])}
    samples["open"] = tf.reshape([1.0, 3.0, 8.0, *[0.0] * 6], [1, 9, 1])
    best = tf.constant([[0, 3, 1, 4]])
    mean, var = kinds_sampler().refit_distribution_to(best, samples)
    np.testing.assert_array_equal(mean["open"], [[2.0]])
    np.testing.assert_array_equal(var["open"], [[1.0]])
    np.testing.assert_array_equal(mean["move"], [[0.0, 0.0]])


@pytest.mark.parametrize("compiled", some_slow([False, True], fast=[False]))
def test_rejected_samples_are_drawn_again(compiled):
    def in_the_right_half(actions, state):
        return actions[..., 0] > state[:, tf.newaxis]

    sampler = continuous.GaussianActionsSampler(
        ACTION, sample_rejecters=in_the_right_half
    )
    draw = tf.function(sampler.sample_batch_and_clip, jit_compile=compiled)
    mean, limits = tf.zeros([3, 2]), tf.constant([-2.0, 0.5, 2.0])
    samples = draw(16, mean, tf.ones([3, 2]), limits, seed=tf.constant([1, 2]))
    assert samples.shape == (3, 16, 2)
    first = samples.numpy()[..., 0]
    assert np.all(first[1] > 0.5)
    plain = continuous.GaussianActionsSampler(ACTION)
    once = plain.sample_batch_and_clip(16, mean, tf.ones([3, 2]), seed=(1, 2))
    assert np.any(once.numpy()[1, :, 0] <= 0.5)
    # Nothing passes the last limit.
    np.testing.assert_array_equal(samples[2], np.zeros([16, 2]))


def test_clippers_change_the_samples_before_the_bounds_do():
    sampler = continuous.GaussianActionsSampler(
        ACTION, sample_clippers=[lambda actions, state: actions + 100.0 * state]
    )
    samples = sampler.sample_batch_and_clip(
        4, tf.zeros([1, 2]), tf.ones([1, 2]), tf.ones([1, 1, 2]), seed=(1, 2)
    )
    np.testing.assert_array_equal(samples, np.tile(ACTION.maximum, [1, 4, 1]))


def test_more_elites_than_samples_are_refused():
    with pytest.raises(ValueError, match="num_elites: expected at most num_samples, 2"):
        make(num_samples=2, num_elites=3).action(step())
