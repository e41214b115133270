"""`StateDependentNoisePolicy`: how long noise is kept, and its distribution."""

import numpy as np
import pytest
import tensorflow as tf

from tfrl.networks import (
    ActorDistributionNetwork,
    ActorDistributionRnnNetwork,
    StateDependentNoiseProjectionNetwork,
)
from tfrl.policies import (
    ActorPolicy,
    GreedyPolicy,
    PolicySaver,
    StateDependentNoisePolicy,
)
from tfrl.specs import tensor_spec
from tfrl.trajectories import policy_step
from tfrl.trajectories import time_step as ts

OBSERVATION = tf.TensorSpec([3], tf.float32)
TIME_STEP = ts.time_step_spec(OBSERVATION)
ACTION = {
    "a": tensor_spec.BoundedTensorSpec([2], tf.float32, [-1.0, 0.0], [1.0, 4.0]),
    "b": tensor_spec.BoundedTensorSpec([1], tf.float32, -1.0, 1.0),
}
FIRST, MID = ts.StepType.FIRST, ts.StepType.MID


def make_actor(
    kind=ActorDistributionNetwork, projection=StateDependentNoiseProjectionNetwork
):
    def project(spec):
        return projection(spec, initial_log_std=-1.0, seed=3)

    layers = (
        {"lstm_size": (4,)}
        if kind is ActorDistributionRnnNetwork
        else {"fc_layer_params": (5,)}
    )
    return kind(
        OBSERVATION, ACTION, continuous_projection_net=project, seed=1, **layers
    )


@pytest.fixture(scope="module")
def actor_policy():
    return ActorPolicy(TIME_STEP, ACTION, make_actor(), emit_log_probability=True)


def at(step_types, observation=None):
    num = len(step_types)
    if observation is None:
        observation = tf.ones([num, 3])
    return ts.TimeStep(
        tf.constant(step_types), tf.zeros([num]), tf.ones([num]), observation
    )


def noise_after(policy, all_step_types):
    """Returns the matrices of each step, `[steps, B, F, A]`, of the action `a`."""
    action = tf.function(policy.action)
    state = policy.get_initial_state(len(all_step_types[0]))
    noise = []
    for i, step_types in enumerate(all_step_types):
        state = action(at(step_types), state, tf.constant([i, 7])).state
        noise.append(state["noise"]["a"].numpy())
    assert action.experimental_get_tracing_count() == 1
    return np.stack(noise)


def changes(noise):
    """Returns where a step's matrix differs from that before, `[steps - 1, B]`."""
    differs = noise[1:] != noise[:-1]
    np.testing.assert_array_equal(differs.all(axis=(2, 3)), differs.any(axis=(2, 3)))
    return differs.all(axis=(2, 3))


def test_noise_is_kept_for_some_steps(actor_policy):
    policy = StateDependentNoisePolicy(actor_policy, sample_freq=3)
    noise = noise_after(policy, [[FIRST] * 2] + [[MID] * 2] * 7)
    np.testing.assert_array_equal(
        changes(noise).T, [[False, False, True, False, False, True, False]] * 2
    )
    assert noise.shape == (8, 2, 5, 2)
    assert not np.array_equal(noise[0, 0], noise[0, 1])


def test_an_episode_starts_with_new_noise_and_counts_its_steps_anew(actor_policy):
    policy = StateDependentNoisePolicy(actor_policy, sample_freq=3)
    noise = noise_after(policy, [[FIRST, FIRST], [MID, FIRST], *[[MID, MID]] * 3])
    np.testing.assert_array_equal(
        changes(noise), [[False, True], [False, False], [True, False], [False, True]]
    )


def test_the_noise_is_no_state_of_a_network(actor_policy):
    policy = StateDependentNoisePolicy(actor_policy)
    assert not policy.is_recurrent
    state = policy.get_initial_state(2)
    assert policy.network_state(state) == policy.network_state(()) == ()
    actor = make_actor(ActorDistributionRnnNetwork)
    recurrent = StateDependentNoisePolicy(ActorPolicy(TIME_STEP, ACTION, actor))
    assert recurrent.is_recurrent
    spec = recurrent.network_state(recurrent.policy_state_spec)
    assert spec == actor.state_spec


@pytest.mark.slow
def test_noise_can_be_kept_for_whole_episodes(actor_policy):
    policy = StateDependentNoisePolicy(actor_policy)
    noise = noise_after(policy, [[FIRST]] + [[MID]] * 6 + [[FIRST], [MID]])
    assert changes(noise)[:, 0].tolist() == [False] * 6 + [True, False]


def test_actions_are_a_function_of_the_state_while_noise_is_kept(actor_policy):
    policy = StateDependentNoisePolicy(actor_policy)
    first = policy.action(at([FIRST]), (), seed=1)
    same = policy.action(at([MID]), first.state, seed=2)
    tf.nest.map_structure(np.testing.assert_array_equal, first.action, same.action)
    other_state = at([MID], tf.constant([[1.0, -2.0, 1.0]]))
    other = policy.action(other_state, first.state, seed=2)
    # The action of another state, by the definition: squash(mean + z (std * E)).
    distributions = actor_policy.distribution(other_state).action
    for name, distribution in distributions.items():
        x = distribution.input_distribution.perturb(first.state["noise"][name])
        spec = ACTION[name]
        half = (spec.maximum - spec.minimum) / 2
        np.testing.assert_allclose(
            other.action[name], spec.minimum + half * (1 + np.tanh(x)), rtol=1e-5
        )


def test_actions_are_distributed_as_the_wrapped_policys(actor_policy):
    """Over many entries, each with noise of its own."""
    policy = StateDependentNoisePolicy(actor_policy)
    many = at([FIRST] * 20_000)
    drawn = np.arctanh(policy.action(many, (), seed=4).action["b"][:, 0])
    normal = actor_policy.distribution(at([FIRST])).action["b"].input_distribution
    np.testing.assert_allclose(drawn.mean(), normal.mean()[0, 0], atol=0.02)
    np.testing.assert_allclose(drawn.std(), normal.stddev()[0, 0], rtol=0.03)


def test_log_probabilities_are_those_of_the_distribution(actor_policy):
    step = StateDependentNoisePolicy(actor_policy).action(at([FIRST] * 4), (), seed=4)
    distributions = actor_policy.distribution(at([FIRST] * 4)).action
    for name, distribution in distributions.items():
        np.testing.assert_allclose(
            policy_step.get_log_probability(step.info)[name],
            distribution.log_prob(step.action[name]),
            rtol=1e-5,
        )


@pytest.mark.slow
def test_plain_and_compiled_actions_are_the_same(actor_policy):
    policy = StateDependentNoisePolicy(actor_policy, sample_freq=2)
    steps = [
        tf.function(policy.action, jit_compile=compiled)(
            at([FIRST, MID]), policy.get_initial_state(2), tf.constant([1, 2])
        )
        for compiled in (False, True)
    ]
    for one, other in zip(*map(tf.nest.flatten, steps), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)


@pytest.mark.slow
def test_the_greedy_policy_is_saved_without_noise(actor_policy, tmp_path):
    noisy = GreedyPolicy(StateDependentNoisePolicy(actor_policy))
    expected = GreedyPolicy(actor_policy).action(at([MID] * 2)).action
    tf.nest.map_structure(
        np.testing.assert_array_equal, noisy.action(at([MID] * 2)).action, expected
    )
    PolicySaver(GreedyPolicy(actor_policy)).save(str(tmp_path))
    loaded = tf.saved_model.load(str(tmp_path))
    tf.nest.map_structure(
        np.testing.assert_allclose, loaded.action(at([MID] * 2)).action, expected
    )
    assert loaded.get_initial_state(2) == ()


def test_the_wrapped_policy_has_its_own_state():
    actor_policy = ActorPolicy(
        TIME_STEP, ACTION, make_actor(ActorDistributionRnnNetwork)
    )
    policy = StateDependentNoisePolicy(actor_policy)
    state = policy.action(at([FIRST]), (), seed=1).state
    again = policy.action(at([MID]), state, seed=2).state
    _, wrapped, _ = actor_policy.action(
        at([MID]), actor_policy.action(at([FIRST])).state
    )
    for one, other in zip(
        *map(tf.nest.flatten, (again["wrapped"], wrapped)), strict=True
    ):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-7)
    np.testing.assert_array_equal(again["noise"]["a"], state["noise"]["a"])


def test_wrong_arguments(actor_policy):
    with pytest.raises(ValueError, match="sample_freq: expected"):
        StateDependentNoisePolicy(actor_policy, 0)
    plain = ActorDistributionNetwork(OBSERVATION, ACTION)
    with pytest.raises(
        ValueError, match="wrapped_policy: the distribution of action a"
    ):
        StateDependentNoisePolicy(ActorPolicy(TIME_STEP, ACTION, plain))
