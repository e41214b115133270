"""DQN's loss, its policies and its errors, against hand-worked numbers.

The Q-values are linear, and the figures called TF-Agents' were computed once with
TF-Agents 0.19 on TensorFlow 2.15 from the same weights and frames.
"""

import keras
import numpy as np
import pytest
import tensorflow as tf

from tfrl import policies
from tfrl.agents.dqn import dqn_agent
from tfrl.networks import network, sequential
from tfrl.specs import tensor_spec
from tfrl.trajectories import policy_step, trajectory
from tfrl.trajectories import time_step as ts
from tfrl.utils import common

FIRST, MID, LAST = 0, 1, 2
OBSERVATION = tf.TensorSpec([2], tf.float32, "observation")
ACTION = tensor_spec.BoundedTensorSpec([], tf.int32, 0, 1)
BOTH = [dqn_agent.DqnAgent, dqn_agent.DdqnAgent]

# Q(s) = s W + b, and another one for the target.
KERNEL, BIAS = np.array([[1, -1], [0.5, 2]], np.float32), np.array([0.25, -0.5])
TARGET_KERNEL, TARGET_BIAS = np.array([[0.5, 1], [-1, 1.5]]), np.array([0.0, 1.0])

FRAMES = trajectory.Trajectory(
    step_type=np.full([3, 3], MID),
    observation=np.array(
        [
            [[1, 2], [3, -1], [0.5, 0.5]],
            [[0, 1], [-2, 1], [1, 1]],
            [[2, 2], [1, 0], [0, -1]],
        ],
        np.float32,
    ),
    action=np.array([[0, 1, 0], [1, 0, 1], [1, 1, 0]], np.int32),
    policy_info=(),
    next_step_type=np.full([3, 3], MID),
    reward=np.array([[1, 2, 3], [-0.5, 0.25, 1], [4, 0, 2]], np.float32),
    discount=np.full([3, 3], 0.9, np.float32),
)


def linear(kernel=KERNEL, bias=BIAS, **kwargs):
    dense = keras.layers.Dense(
        2,
        kernel_initializer=keras.initializers.Constant(kernel),
        bias_initializer=keras.initializers.Constant(bias),
        **kwargs,
    )
    return sequential.Sequential([dense], input_spec=OBSERVATION)


def make(kind=dqn_agent.DqnAgent, q_network=None, action_spec=ACTION, **kwargs):
    kwargs.setdefault("target_q_network", linear(TARGET_KERNEL, TARGET_BIAS))
    return kind(
        ts.time_step_spec(OBSERVATION),
        action_spec,
        q_network or linear(),
        kwargs.pop("optimizer", None) or keras.optimizers.SGD(0.1),
        **kwargs,
    )


def window(num_frames, **fields):
    """The first frames of each row, some fields replaced, as tensors."""
    frames = FRAMES._replace(**fields)
    frames = frames._replace(
        step_type=np.asarray(frames.step_type, np.int32),
        next_step_type=np.asarray(frames.next_step_type, np.int32),
    )
    return tf.nest.map_structure(lambda x: tf.constant(x[:, :num_frames]), frames)


def q_values(observations):
    return observations @ KERNEL + BIAS


def target_q_values(observations):
    return observations @ TARGET_KERNEL + TARGET_BIAS


# --- The loss.


def test_one_step_loss_by_hand():
    # Row 0: Q = 1 + 1 + 0.25 = 2.25, max Q_target([3, -1]) = 2.5,
    # target = 1 + 0.8 * 0.9 * 2.5 = 2.8, error 0.55, Huber 0.55^2 / 2.
    loss, extra = make(gamma=0.8).loss(window(2))
    np.testing.assert_allclose(extra.td_error[0], 0.55, rtol=1e-5)
    np.testing.assert_allclose(extra.td_loss[0], 0.15125, rtol=1e-5)
    np.testing.assert_allclose(loss, np.mean(extra.td_loss), rtol=1e-6)


@pytest.mark.parametrize(
    ("kind", "td_error", "loss"),
    [
        (dqn_agent.DqnAgent, [0.55, -1.64, 3.94], 1.5770832),
        (dqn_agent.DdqnAgent, [0.55, -1.64, 2.86], 1.2170833),
    ],
)
def test_one_step_loss_is_that_of_tf_agents(kind, td_error, loss):
    info = make(kind, gamma=0.8).loss(window(2))
    np.testing.assert_allclose(info.extra.td_error, td_error, rtol=1e-5)
    np.testing.assert_allclose(info.loss, loss, rtol=1e-5)


@pytest.mark.parametrize(
    ("kind", "td_loss", "loss"),
    [
        (dqn_agent.DqnAgent, [0.01860496, 0.02383932, 1.0371385], 0.70160055),
        (dqn_agent.DdqnAgent, [1.3446722, 3.6833284, 1.0371385], 1.7535378),
    ],
)
def test_two_step_weighted_loss_is_that_of_tf_agents(kind, td_loss, loss):
    agent = make(
        kind,
        gamma=0.8,
        n_step_update=2,
        td_errors_loss_fn=common.element_wise_squared_loss,
        reward_scale_factor=0.5,
    )
    info = agent.loss(window(3), weights=tf.constant([1.0, 0.5, 2.0]))
    np.testing.assert_allclose(info.extra.td_loss, td_loss, rtol=1e-4)
    np.testing.assert_allclose(info.loss, loss, rtol=1e-5)


def test_double_dqn_lets_the_online_network_choose():
    # At [1, 0] the networks disagree: Q = [1.25, -1.5], Q_target = [0.5, 2].
    frames = window(2, reward=np.zeros([3, 3], np.float32))
    online = q_values(FRAMES.observation[2, 0])[1]
    for kind, value in zip(BOTH, [2.0, 0.5], strict=True):
        error = make(kind).loss(frames).extra.td_error[2]
        np.testing.assert_allclose(error, 0.9 * value - online, rtol=1e-5)


def test_targets_have_no_gradient():
    values = tf.constant([3.0, 4.0])
    with tf.GradientTape() as tape:
        tape.watch(values)
        targets = dqn_agent.compute_td_targets(values, tf.constant([1.0, 2.0]), 0.5)
    np.testing.assert_array_equal(targets, [2.5, 4])
    assert tape.gradient(targets, values) is None


@pytest.mark.parametrize("kind", BOTH)
def test_termination_does_not_bootstrap(kind):
    ends = window(
        2,
        next_step_type=np.full([3, 3], LAST),
        step_type=[[MID, LAST, FIRST]] * 3,
        discount=np.zeros([3, 3], np.float32),
    )
    predictions = [q_values(o[0])[a[0]] for o, a in zip(*FRAMES[1:3], strict=True)]
    np.testing.assert_allclose(
        make(kind).loss(ends).extra.td_error,
        FRAMES.reward[:, 0] - predictions,
        rtol=1e-5,
    )


def test_truncation_bootstraps_the_last_observation():
    # The same step types as at a termination, but the discount goes on.
    ends = window(
        2, next_step_type=np.full([3, 3], LAST), step_type=[[MID, LAST, FIRST]] * 3
    )
    np.testing.assert_allclose(
        make(gamma=0.8).loss(ends).extra.td_error, [0.55, -1.64, 3.94], rtol=1e-5
    )


@pytest.mark.parametrize(
    ("step_type", "next_step_type", "discount", "reward", "bootstrap"),
    [
        # Terminated in the first step: neither the second reward nor any value.
        ([MID, LAST, FIRST], [LAST, FIRST, MID], [0, 1, 1], 1, (0, 1)),
        # Truncated in the first step: the value of the observation in frame 1.
        ([MID, LAST, FIRST], [LAST, FIRST, MID], [1, 1, 1], 1, (0.5, 1)),
        # Terminated in the second: both rewards.
        ([MID, MID, LAST], [MID, LAST, FIRST], [1, 0, 1], 1 + 0.5 * 2, (0, 2)),
        # Truncated in the second.
        ([MID, MID, LAST], [MID, LAST, FIRST], [1, 1, 1], 1 + 0.5 * 2, (0.25, 2)),
        # Cut before frame 2, which begins something else: one step is left.
        ([MID, MID, FIRST], [MID, MID, MID], [1, 1, 1], 1, (0.5, 1)),
    ],
)
def test_two_step_windows_end_at_the_episodes_end(
    step_type, next_step_type, discount, reward, bootstrap
):
    frames = window(
        3,
        step_type=[step_type] * 3,
        next_step_type=[next_step_type] * 3,
        discount=np.array([discount] * 3, np.float32),
    )
    info = make(n_step_update=2, gamma=0.5).loss(frames)
    factor, frame = bootstrap
    value = target_q_values(FRAMES.observation[0, frame]).max()
    expected = reward + factor * value - q_values(FRAMES.observation[0, 0])[0]
    np.testing.assert_allclose(info.extra.td_error[0], expected, rtol=1e-5)


@pytest.mark.parametrize("n", [1, 2])
@pytest.mark.parametrize(
    ("step_type", "next_step_type"),
    [
        ([LAST, FIRST, MID], [FIRST, MID, MID]),  # A boundary.
        ([MID, FIRST, MID], [MID, MID, MID]),  # A cut: a reset in mid-episode.
    ],
)
def test_boundaries_and_cuts_count_in_the_mean_with_zero(n, step_type, next_step_type):
    agent = make(n_step_update=n, td_errors_loss_fn=lambda x, y: (x - y) ** 2 + 1)
    step_types = [step_type, [MID] * 3, [MID] * 3]
    next_step_types = [next_step_type, [MID] * 3, [MID] * 3]
    whole = agent.loss(window(n + 1)).extra
    masked = agent.loss(
        window(n + 1, step_type=step_types, next_step_type=next_step_types)
    )
    np.testing.assert_array_equal(masked.extra.td_loss[0], 0)
    np.testing.assert_array_equal(masked.extra.td_error[0], 0)
    np.testing.assert_allclose(masked.loss, np.sum(whole.td_loss[1:]) / 3, rtol=1e-6)


def test_masked_transition_has_no_gradient_whatever_it_holds():
    now, action_step, then = trajectory.to_transition(window(2))
    now, action_step, then = tf.nest.map_structure(
        lambda t: t[:, 0], (now, action_step, then)
    )
    experience = trajectory.Transition(
        now._replace(step_type=tf.constant([MID, LAST, MID])),
        action_step,
        then._replace(reward=tf.constant([1.0, np.nan, 1.0])),
    )
    agent = make(td_errors_loss_fn=common.element_wise_squared_loss)
    assert np.isfinite(agent.train(experience).loss)
    assert all(np.isfinite(v).all() for v in agent.variables())


def test_reward_scale_factor_multiplies_the_reward_alone():
    zero = np.zeros([3, 3], np.float32)
    errors = make(reward_scale_factor=0.25).loss(window(2)).extra.td_error
    without = make().loss(window(2, reward=zero)).extra.td_error
    np.testing.assert_allclose(
        errors - without, 0.25 * FRAMES.reward[:, 0], rtol=1e-4, atol=1e-6
    )


@pytest.mark.parametrize("weights", [3.0, [3.0, 0.0, 1.0]])
def test_weights_multiply_the_examples_and_leave_the_details_alone(weights):
    agent = make()
    plain = agent.loss(window(2))
    weighted = agent.loss(window(2), weights=tf.constant(weights))
    expected = np.mean(plain.extra.td_loss * np.asarray(weights))
    np.testing.assert_allclose(weighted.loss, expected, rtol=1e-6)
    np.testing.assert_array_equal(weighted.extra.td_loss, plain.extra.td_loss)


def test_regularization_losses_are_added():
    regularized = linear(kernel_regularizer=keras.regularizers.L2(0.01))
    difference = (
        make(q_network=regularized).loss(window(2)).loss - make().loss(window(2)).loss
    )
    np.testing.assert_allclose(difference, 0.01 * np.sum(KERNEL**2), rtol=1e-4)


def test_loss_changes_nothing():
    normalised = keras.Sequential(
        [keras.layers.BatchNormalization(), keras.layers.Dense(2)]
    )
    agent = make(q_network=normalised, target_q_network=None)
    before = [v.numpy() for v in agent.variables()]
    agent.loss(window(2))
    for old, new in zip(before, agent.variables(), strict=True):
        np.testing.assert_array_equal(old, new)


def test_transition_gives_the_loss_of_its_frames():
    one_step = tf.nest.map_structure(
        lambda t: t[:, 0], trajectory.to_transition(window(2))
    )
    agent = make(gamma=0.8)
    np.testing.assert_allclose(
        agent.loss(one_step).loss, agent.loss(window(2)).loss, rtol=1e-6
    )


def test_arrays_do_as_well_as_tensors():
    arrays = tf.nest.map_structure(lambda t: t.numpy(), window(2))
    agent = make()
    np.testing.assert_array_equal(agent.loss(arrays).loss, agent.loss(window(2)).loss)


@pytest.mark.parametrize("dtype", [np.uint8, np.int16, np.int64])
def test_actions_of_other_integer_types(dtype):
    spec = tensor_spec.BoundedTensorSpec([], dtype, 0, 1)
    frames = window(2, action=FRAMES.action.astype(dtype))
    agent = make(action_spec=spec, gamma=0.8)
    np.testing.assert_allclose(agent.train(frames).loss, 1.5770832, rtol=1e-5)


# --- Recurrent networks.


class RunningSum(network.Network):
    """Q-values of the sum of all observations so far."""

    def __init__(self, input_tensor_spec=OBSERVATION, name="RunningSum"):
        super().__init__(input_tensor_spec, tf.TensorSpec([2], tf.float32), name)
        self._dense = keras.layers.Dense(
            2,
            kernel_initializer=keras.initializers.Constant(KERNEL),
            use_bias=False,
        )

    def call(self, observation, step_type=None, network_state=()):
        sequence = observation if observation.shape.rank == 3 else observation[:, None]
        total = tf.cumsum(sequence, axis=1)
        if tf.nest.flatten(network_state):
            total += network_state[:, None]
        outputs = self._dense(total)
        return outputs if observation.shape.rank == 3 else outputs[:, 0], total[:, -1]


def recurrent(**kwargs):
    return make(q_network=RunningSum(), target_q_network=None, **kwargs)


def test_recurrent_loss_sums_over_time_and_averages_over_the_batch():
    agent = recurrent(gamma=0.5, td_errors_loss_fn=common.element_wise_squared_loss)
    assert agent.train_sequence_length is None
    agent.initialize()
    info = agent.loss(window(3))
    now = np.cumsum(FRAMES.observation[:, :2], axis=1) @ KERNEL
    # The next steps too are valued after all that came before.
    then = (np.cumsum(FRAMES.observation, axis=1)[:, 1:3] @ KERNEL).max(-1)
    taken = np.take_along_axis(now, FRAMES.action[:, :2, None], axis=-1)[..., 0]
    errors = FRAMES.reward[:, :2] + 0.5 * 0.9 * then - taken
    np.testing.assert_allclose(info.extra.td_error, errors, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(info.extra.td_loss, (errors**2).sum(1), rtol=1e-5)
    np.testing.assert_allclose(info.loss, (errors**2).sum(1).mean(), rtol=1e-5)


def test_recurrent_loss_masks_boundaries_inside_the_sequence():
    info = recurrent().loss(
        window(
            3,
            step_type=[[MID, LAST, FIRST]] * 3,
            next_step_type=[[LAST, FIRST, MID]] * 3,
        )
    )
    assert (info.extra.td_error.numpy()[:, 0] != 0).all()
    np.testing.assert_array_equal(info.extra.td_error[:, 1], 0)


def test_recurrent_policies_carry_the_state():
    agent = recurrent(epsilon_greedy=0.0)
    state = agent.collect_policy.get_initial_state(3)
    step = ts.transition(tf.constant(FRAMES.observation[:, 0]), reward=tf.zeros(3))
    result = agent.collect_policy.action(step, state)
    result = agent.collect_policy.action(step, result.state)
    np.testing.assert_array_equal(result.state, 2 * FRAMES.observation[:, 0])


# --- Masks.

MASKED = {
    "state": OBSERVATION,
    "mask": tensor_spec.BoundedTensorSpec([2], tf.int32, 0, 1),
}


def split(observation):
    return observation["state"], observation["mask"]


def make_masked(kind=dqn_agent.DqnAgent, **kwargs):
    return kind(
        ts.time_step_spec(MASKED),
        ACTION,
        linear(),
        keras.optimizers.SGD(0.1),
        observation_and_action_constraint_splitter=split,
        target_q_network=linear(TARGET_KERNEL, TARGET_BIAS),
        **kwargs,
    )


def masked_window(mask, **fields):
    frames = window(2, **fields)
    mask = tf.broadcast_to(tf.constant(mask, tf.int32), [3, 2, 2])
    return frames._replace(
        observation={"state": frames.observation, "mask": mask, "unused": mask}
    )


@pytest.mark.parametrize("kind", BOTH)
@pytest.mark.parametrize("mask", [[1, 0], [0, 1]])
def test_target_takes_valid_actions_only(kind, mask):
    error = make_masked(kind).loss(masked_window(mask)).extra.td_error
    values = target_q_values(FRAMES.observation[:, 1])[:, mask.index(1)]
    predictions = np.take_along_axis(
        q_values(FRAMES.observation[:, 0]), FRAMES.action[:, :1], axis=1
    )[:, 0]
    expected = FRAMES.reward[:, 0] + 0.9 * values - predictions
    np.testing.assert_allclose(error, expected, rtol=1e-5)


@pytest.mark.parametrize("kind", BOTH)
@pytest.mark.parametrize("discount", [0.0, 1.0])
def test_end_without_a_valid_action_gives_a_finite_loss(kind, discount):
    agent = make_masked(kind, td_errors_loss_fn=common.element_wise_squared_loss)
    frames = masked_window(
        [[1, 1], [0, 0]],
        next_step_type=np.full([3, 3], LAST),
        step_type=[[MID, LAST, FIRST]] * 3,
        discount=np.full([3, 3], discount, np.float32),
    )
    assert agent.train(frames).loss < 1e3
    assert all(np.isfinite(v).all() for v in agent.variables())


@pytest.mark.parametrize("which", ["policy", "collect_policy"])
@pytest.mark.parametrize("mask", [[1, 0], [0, 1]])
def test_policies_take_valid_actions_only(which, mask):
    agent = make_masked(epsilon_greedy=0.5, seed=0)
    observation = {
        "state": tf.random.stateless_normal([200, 2], [1, 2]),
        "mask": tf.constant([mask] * 200),
    }
    actions = getattr(agent, which).action(ts.restart(observation, 200)).action
    np.testing.assert_array_equal(actions, mask.index(1))


# --- Policies.


def explored(agent, num=500):
    """How many of `num` collected actions differ from the greedy ones."""
    step = ts.restart(tf.random.stateless_normal([num, 2], [1, 2]), num)
    collected = agent.collect_policy.action(step).action
    return int(tf.reduce_sum(tf.abs(collected - agent.policy.action(step).action)))


def test_policy_takes_the_best_action():
    step = ts.restart(tf.constant(FRAMES.observation[:, 0]), 3)
    best = q_values(FRAMES.observation[:, 0]).argmax(-1)
    np.testing.assert_array_equal(make().policy.action(step).action, best)


@pytest.mark.parametrize(("epsilon", "low", "high"), [(0.0, 0, 0), (1.0, 200, 300)])
def test_epsilon_as_number(epsilon, low, high):
    assert low <= explored(make(epsilon_greedy=epsilon, seed=1)) <= high


@pytest.mark.parametrize("wrap", [lambda v: v, lambda v: lambda: v])
def test_epsilon_as_variable_or_callable_is_read_at_each_step(wrap):
    variable = tf.Variable(0.0)
    agent = make(epsilon_greedy=wrap(variable), seed=1)
    assert explored(agent) == 0
    variable.assign(1.0)
    assert explored(agent) > 200


@pytest.mark.parametrize("step_dtype", [tf.int32, tf.int64])
def test_epsilon_schedule_follows_the_train_step(step_dtype):
    decay = keras.optimizers.schedules.PolynomialDecay(1.0, 10, 0.0)
    agent = make(
        epsilon_greedy=decay, train_step_counter=tf.Variable(0, dtype=step_dtype)
    )
    assert explored(agent) > 200
    agent.train_step_counter.assign(10)
    assert explored(agent) == 0


@pytest.mark.parametrize("as_schedule", [False, True])
def test_boltzmann_divides_the_values_by_the_temperature(as_schedule):
    temperature = 4.0
    if as_schedule:
        temperature = keras.optimizers.schedules.PolynomialDecay(4.0, 10, 1.0)
    agent = make(epsilon_greedy=None, boltzmann_temperature=temperature)
    step = ts.restart(tf.constant(FRAMES.observation[:, 0]), 3)
    logits = agent.collect_policy.distribution(step).action.logits
    np.testing.assert_allclose(
        logits, q_values(FRAMES.observation[:, 0]) / 4, rtol=1e-6
    )


def test_a_function_makes_the_policy_that_collects():
    def explore(policy):
        return policies.EpsilonGreedyPolicy(policy, epsilon=0.4, seed=1)

    own = make(exploration=explore, epsilon_greedy=None, seed=1)
    usual = make(epsilon_greedy=0.4, seed=1)
    step = ts.restart(tf.random.stateless_normal([50, 2], [1, 2]), 50)
    np.testing.assert_array_equal(
        own.collect_policy.action(step).action, usual.collect_policy.action(step).action
    )
    assert explored(own) > 0
    assert "epsilon" not in own.diagnose(window(2))


def test_log_probability_is_collected_and_accepted():
    agent = make(emit_log_probability=True, epsilon_greedy=0.5)
    info = policy_step.get_log_probability(agent.collect_data_spec.policy_info)
    assert info.dtype == tf.float32
    frames = window(2)._replace(
        policy_info=policy_step.PolicyInfo(log_probability=tf.zeros([3, 2]))
    )
    assert np.isfinite(agent.train(frames).loss)


def test_same_seed_collects_the_same_actions():
    counts = [explored(make(epsilon_greedy=0.5, seed=s)) for s in (3, 3)]
    assert counts[0] == counts[1] > 0


# --- Networks.


@pytest.mark.parametrize("kind", ["layer", "sequential", "functional"])
def test_keras_layers_and_models_are_networks(kind):
    dense = linear().layers[0]
    inputs = keras.Input([2])
    q_network = {
        "layer": lambda: dense,
        "sequential": lambda: keras.Sequential([dense]),
        "functional": lambda: keras.Model(inputs, dense(inputs)),
    }[kind]()
    agent = make(q_network=q_network, target_q_network=None, gamma=0.8)
    agent.initialize()
    # Both networks are the same now, so the target comes from KERNEL as well.
    taken = np.take_along_axis(
        q_values(FRAMES.observation[:, 0]), FRAMES.action[:, :1], 1
    )
    values = q_values(FRAMES.observation[:, 1]).max(-1)
    expected = FRAMES.reward[:, 0] + 0.8 * 0.9 * values - taken[:, 0]
    error = agent.train(window(2)).extra.td_error
    np.testing.assert_allclose(error, expected, rtol=1e-5)


def test_keras_model_as_target_network():
    target = keras.Sequential(linear(TARGET_KERNEL, TARGET_BIAS).layers)
    loss = make(target_q_network=target, gamma=0.8).loss(window(2)).loss
    np.testing.assert_allclose(loss, 1.5770832, rtol=1e-5)


# --- Errors.


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        (
            tensor_spec.BoundedTensorSpec([], tf.int32, 1, 2),
            "action_spec: DQN expects actions that count from 0, got minimum 1; "
            "shift them with tfrl.environments.wrappers.ActionOffsetWrapper",
        ),
        (
            tensor_spec.BoundedTensorSpec([], tf.float32, 0, 1),
            "one scalar integer action.*with agents.ReinforceAgent, or make them "
            "discrete with environments.wrappers.ActionDiscretizeWrapper",
        ),
        (tensor_spec.BoundedTensorSpec([2], tf.int32, 0, 1), "one scalar integer"),
        ([ACTION, ACTION], "one scalar integer action"),
        (tf.TensorSpec([], tf.int32), "expects a BoundedTensorSpec"),
    ],
)
def test_action_spec_has_to_be_one_scalar_from_zero(spec, message):
    with pytest.raises(ValueError, match=message):
        make(action_spec=spec)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            {"epsilon_greedy": 0.1, "boltzmann_temperature": 1.0},
            "expected one of them, got 0.1 and 1.0; give None for the other",
        ),
        (
            {"exploration": lambda policy: policy, "boltzmann_temperature": 1.0},
            "exploration and boltzmann_temperature: expected one of them, got both",
        ),
        (
            {"epsilon_greedy": None},
            "got None for both; epsilon_greedy=0.0 collects without exploring",
        ),
        (
            {"n_step_update": 0},
            r"n_step_update: expected an integer of at least 1, got 0; 1 gives",
        ),
        ({"gamma": 2}, r"gamma: expected a number in \[0, 1\], got 2.0; 0.99 is"),
        ({"gamma": -1.0}, r"gamma: expected a number in \[0, 1\], got -1.0; 0.99 is"),
        ({"epsilon_greedy": 2.0}, r"epsilon_greedy: expected a number in .* got 2.0;"),
        (
            {
                "epsilon_greedy": keras.optimizers.schedules.PolynomialDecay(
                    0.5, 10, -1.0
                )
            },
            "epsilon_greedy: .* got -1.0 as end_learning_rate of the schedule Poly",
        ),
        (
            {"epsilon_greedy": None, "boltzmann_temperature": 0.0},
            "boltzmann_temperature: expected a finite number above 0, got 0.0",
        ),
        ({"gradient_clipping": 0.0}, "gradient_clipping: expected .* got 0.0; give"),
        (
            {"reward_scale_factor": float("nan")},
            "reward_scale_factor: expected a finite number, got nan; 1 keeps",
        ),
        (
            {"optimizer": keras.optimizers.Adam(-1e-3)},
            "learning_rate: expected a finite number of at least 0, got -0.001",
        ),
        ({"target_update_tau": 1.5}, r"target_update_tau: .*\[0, 1\], got 1.5"),
        (
            {"target_update_period": 0},
            r"target_update_period: expected an int.*got 0; No",
        ),
        (
            {"q_network": keras.layers.Dense(3), "target_q_network": None},
            r"Expected q_network to emit .* inner dims \(2,\); but saw .*\(3,\)",
        ),
        (
            {"target_q_network": keras.layers.Dense(2, use_bias=False)},
            "expected variables of the same shapes and dtypes.*build both with",
        ),
    ],
)
def test_wrong_arguments(arguments, message):
    with pytest.raises(ValueError, match=message):
        make(**arguments)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"gamma": "0.9"}, r"gamma: expected a number in .* got '0.9' of type str"),
        ({"n_step_update": 1.5}, r"n_step_update: expected an integer .* got 1.5 of"),
        ({"optimizer": "adam"}, "optimizer: expected a Keras 3 optimizer .*got str"),
        (
            {"train_step_counter": 0},
            "train_step_counter: expected an integer tf.Variable, got 0; pass tf.Var",
        ),
        ({"q_network": lambda x: x}, "got <function .*expected all .* keras Layer"),
    ],
)
def test_wrong_types(arguments, message):
    with pytest.raises(TypeError, match=message):
        make(**arguments)


def test_time_step_spec_has_to_be_a_time_step():
    with pytest.raises(TypeError, match="time_step_spec: expected a TimeStep of specs"):
        dqn_agent.DqnAgent(OBSERVATION, ACTION, linear(), keras.optimizers.SGD(0.1))


def test_target_must_not_share_variables():
    q_network = linear()
    shares = sequential.Sequential(q_network.layers, input_spec=OBSERVATION)
    with pytest.raises(ValueError, match=r"no trainable variables in common.*kernel"):
        make(q_network=q_network, target_q_network=shares)


@pytest.mark.parametrize("shape", [[3, 1], [2], [3, 3]])
def test_weights_of_another_shape_are_not_broadcast(shape):
    with pytest.raises(ValueError, match=r"weights: expected a scalar or a shape that"):
        make().train(window(2), weights=tf.ones(shape))


def test_sequence_length_of_the_experience():
    with pytest.raises(
        ValueError,
        match=r"T = 2 of a tensor \[B, T, ...\], got shape \(3, 3\); sample with "
        "num_steps=2",
    ):
        make().train(window(3))
    with pytest.raises(ValueError, match="sample with num_steps=4"):
        make(n_step_update=3).train(window(3))


@pytest.mark.parametrize("graph", [False, True])
@pytest.mark.parametrize("kind", [dqn_agent.DqnAgent, dqn_agent.DdqnAgent])
def test_huge_observations_with_a_finite_loss_are_an_error_and_train_nothing(
    kind, graph
):
    agent = make(kind, optimizer=keras.optimizers.Adam(0.1))
    train = common.function(agent.train) if graph else agent.train
    train(window(2))
    before = [v.numpy() for v in agent.variables()]
    huge = window(2, observation=FRAMES.observation * np.float32(1e30))
    assert np.isfinite(agent.loss(huge).loss)
    with pytest.raises(
        tf.errors.InvalidArgumentError,
        match=r"Agent loss is finite, but .*gradients is not.* No weight was changed",
    ):
        train(huge)
    for old, new in zip(before, agent.variables(), strict=True):
        np.testing.assert_array_equal(old, new)
    train(window(2))


@pytest.mark.parametrize("graph", [False, True])
def test_experience_that_is_not_a_number_is_an_error_and_trains_nothing(graph):
    agent = make(optimizer=keras.optimizers.Adam(0.1), target_update_period=2)
    train = common.function(agent.train) if graph else agent.train
    before = [v.numpy() for v in agent.variables()]
    with pytest.raises(
        tf.errors.InvalidArgumentError,
        match=r"experience: the DqnAgent loss is not finite, expected a number; look "
        r"for NaN or infinite observations and rewards.*No weight was changed",
    ):
        train(window(2, observation=FRAMES.observation * np.float32(np.nan)))
    for old, new in zip(before, agent.variables(), strict=True):
        np.testing.assert_array_equal(old, new)
