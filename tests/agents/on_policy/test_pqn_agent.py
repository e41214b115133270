"""PQN's returns against a loop over frames, its loss by hand, and what it masks."""

import functools

import keras
import numpy as np
import pytest
import tensorflow as tf

from tests.agents.on_policy.rollouts import LAST, MID, collect, flat
from tfrl import networks
from tfrl.agents import PqnAgent
from tfrl.specs import tensor_spec
from tfrl.trajectories import time_step as ts
from tfrl.trajectories import trajectory
from tfrl.utils.reward_normalizer import RewardNormalizer
from tfrl.utils.tensor_normalizer import StreamingTensorNormalizer

OBSERVATION = tf.TensorSpec([2], tf.float32)
CHOICE = tensor_spec.BoundedTensorSpec([], tf.int32, 0, 2)
# A truncation, a termination, none, a reset in mid-episode, an episode of one step.
ROWS = ["fmTbfmmm", "mMbfmmmm", "mmmmmmmm", "fmmfmmTb", "mTbSbfMb"]
CUT = (3, 2)


def make(network=None, splitter=None, observation=OBSERVATION, **kwargs):
    if network is None:
        network = keras.layers.Dense(
            3, kernel_initializer=keras.initializers.RandomNormal(seed=1)
        )
    return PqnAgent(
        ts.time_step_spec(observation),
        CHOICE,
        network,
        keras.optimizers.SGD(0.1),
        observation_and_action_constraint_splitter=splitter,
        seed=0,
        **kwargs,
    )


def expected_returns(frames, values, gamma, lambda_value):
    """The returns of the steps of each row, in a loop, NaN where there is none.

    Args:
      frames: Frames `[B, T + 1]` of `collect`.
      values: The largest value of each frame's observation, `[B, T + 1]`.
      gamma: The discount factor.
      lambda_value: The lambda.
    """
    frames = tf.nest.map_structure(np.asarray, frames)
    returns = np.full([len(values), values.shape[1] - 1], np.nan)
    for row, result in enumerate(returns):
        following = None
        for t in reversed(range(len(result))):
            if frames.step_type[row, t] == LAST or (row, t) == CUT:
                following = None
                continue
            onward = values[row, t + 1]
            goes_on = frames.next_step_type[row, t] == MID
            if goes_on and following is not None:
                onward = lambda_value * following + (1 - lambda_value) * onward
            onward *= gamma * frames.discount[row, t]
            result[t] = following = frames.reward[row, t] + onward
    return returns


@pytest.mark.parametrize("lambda_value", [0.0, 0.65, 1.0])
def test_the_returns_are_those_of_a_loop_over_frames(lambda_value):
    agent = make(gamma=0.9, lambda_value=lambda_value)
    frames, _ = collect(agent, *ROWS)
    data = agent.preprocess_sequence(frames)
    q_values, _ = agent.policy.wrapped_policy._q_network(frames.observation)
    expected = expected_returns(frames, q_values.numpy().max(-1), 0.9, lambda_value)
    counts = np.isfinite(expected)
    np.testing.assert_array_equal(data.step_type != LAST, counts)
    np.testing.assert_allclose(
        data.policy_info["return"].numpy()[counts], expected[counts], rtol=1e-5
    )


def identity(weights=((1.0, 0.0, 0.0), (0.0, 1.0, 0.0))):
    """The values of the first two actions are the numbers of the observation."""
    return keras.layers.Dense(
        3, use_bias=False, kernel_initializer=keras.initializers.Constant(weights)
    )


def steps(step_type, returns):
    """Training data `[1, 3]`: observations (1, 2), (3, 4), (5, 6), actions 0, 1, 2."""
    return trajectory.Trajectory(
        step_type=tf.constant([step_type]),
        observation=tf.constant([[[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]]),
        action=tf.constant([[0, 1, 2]]),
        policy_info={"return": tf.constant([returns])},
        next_step_type=tf.fill([1, 3], MID),
        reward=tf.zeros([1, 3]),
        discount=tf.ones([1, 3]),
    )


def test_the_loss_by_hand():
    agent = make(identity(), gradient_clipping=None)
    kernel = agent.policy.variables()[0]
    before = kernel.numpy()
    # The actions have the values 1, 4 and 0; the errors are 2, a boundary's, and -3.
    loss, extra = agent.train(steps([MID, LAST, MID], [3.0, 1e9, -3.0]))
    np.testing.assert_allclose(loss, (2**2 + 3**2) / 3, rtol=1e-6)
    np.testing.assert_allclose(extra.td_loss, loss)
    np.testing.assert_allclose(extra.q_value, (1 + 0) / 2)
    # The gradient of an error is -2 error x / 3, and the rate is 0.1.
    change = np.zeros([2, 3])
    change[:, 0] = 0.1 * 2 / 3 * 2 * np.array([1, 2])
    change[:, 2] = 0.1 * 2 / 3 * -3 * np.array([5, 6])
    np.testing.assert_allclose(kernel.numpy() - before, change, rtol=1e-4, atol=1e-6)


def test_all_gradients_together_are_clipped():
    agent = make(identity(), gradient_clipping=0.5)
    kernel = agent.policy.variables()[0]
    before = kernel.numpy()
    data = steps([MID, MID, MID], [3.0, 9.0, -3.0])
    assert agent.diagnose(data)["gradient_norm"] > 1
    agent.train(data)
    np.testing.assert_allclose(
        np.linalg.norm(kernel.numpy() - before), 0.1 * 0.5, rtol=1e-4
    )


def test_no_gradient_reaches_the_observation_of_a_boundary():
    agent = make()
    data = agent.preprocess_sequence(collect(agent, *ROWS)[0])
    with tf.GradientTape() as tape:
        tape.watch(data.observation)
        loss = agent.loss(data).loss
    moves = np.any(tape.gradient(loss, data.observation), axis=-1)
    np.testing.assert_array_equal(moves, data.step_type != LAST)


def test_minibatches_of_single_steps_add_up_to_the_rollout():
    agent = make()
    data = agent.preprocess_sequence(collect(agent, *ROWS)[0])
    np.testing.assert_allclose(
        agent.loss(flat(data)).loss, agent.loss(data).loss, rtol=1e-6
    )


def test_invalid_actions_count_neither_in_returns_nor_in_actions():
    observation = {"x": OBSERVATION, "mask": tf.TensorSpec([3], tf.int32)}
    # The first action is the best one, but never valid.
    agent = make(
        identity(((9.0, 1.0, 0.0), (9.0, 0.0, 1.0))),
        splitter=lambda o: (o["x"], o["mask"]),
        observation=observation,
        epsilon_greedy=0.5,
        gamma=0.9,
    )
    x = tf.constant(np.random.default_rng(0).random([40, 2]), tf.float32)
    mask = tf.tile([[0, 1, 1]], [40, 1])
    step = ts.restart({"x": x, "mask": mask}, batch_size=40)
    assert {1, 2} == {*agent.collect_policy.action(step, seed=1).action.numpy()}
    frames = trajectory.Trajectory(
        step_type=tf.fill([20, 2], MID),
        observation={
            "x": tf.reshape(x, [20, 2, 2]),
            "mask": tf.reshape(mask, [20, 2, 3]),
        },
        action=tf.ones([20, 2], tf.int32),
        policy_info=(),
        next_step_type=tf.fill([20, 2], MID),
        reward=tf.ones([20, 2]),
        discount=tf.ones([20, 2]),
    )
    data = agent.preprocess_sequence(frames)
    best = np.max(frames.observation["x"][:, 1], axis=-1)
    np.testing.assert_allclose(
        data.policy_info["return"][:, 0], 1 + 0.9 * best, rtol=1e-5
    )
    assert np.isfinite(agent.train(data).loss)


def test_returns_are_of_normalized_rewards_and_observations():
    agent = make(
        identity(),
        gamma=0.9,
        lambda_value=0.0,
        observation_normalizer=StreamingTensorNormalizer(OBSERVATION),
        reward_normalizer=RewardNormalizer(gamma=0.0),
    )
    frames, _ = collect(agent, "mmmmmmmm")
    agent.update_normalizers(frames)
    data = agent.preprocess_sequence(frames)
    reward = agent.reward_normalizer.normalize(frames.reward)
    seen = agent.observation_normalizer.normalize(frames.observation).numpy()
    values = np.maximum(seen.max(-1), 0)
    np.testing.assert_allclose(
        data.policy_info["return"], reward[:, :-1] + 0.9 * values[:, 1:], rtol=1e-4
    )
    assert np.isfinite(agent.train(data).loss)


@functools.cache
def recurrent():
    network = networks.QRnnNetwork(
        OBSERVATION, CHOICE, input_fc_layer_params=None, lstm_size=(4,), seed=1
    )
    return make(network)


def test_a_recurrent_network_goes_on_from_the_state_at_the_rollouts_start():
    agent = recurrent()
    rows = ["fmmm", "mTbf"]
    frames, _ = collect(agent, *(row + "mmmm" for row in rows), state=start())
    _, state = collect(agent, *rows, state=start())
    whole = agent.preprocess_sequence(frames)
    later = tf.nest.map_structure(lambda leaf: leaf[:, 4:], frames)
    for given, same in ((state, True), ((), False)):
        data = agent.preprocess_sequence(later, policy_state=given)
        alike = np.allclose(
            data.policy_info["return"], whole.policy_info["return"][:, 4:], rtol=1e-5
        )
        assert alike == same
    losses = [agent.loss(data, policy_state=given).loss for given in (state, start())]
    assert losses[0] != losses[1]
    assert np.isfinite(agent.train(data, policy_state=state).loss)


def start():
    return recurrent().collect_policy.get_initial_state(2)


def test_exploration_follows_its_schedule_of_the_train_steps():
    schedule = keras.optimizers.schedules.PolynomialDecay(1.0, 4, 0.0)
    agent = make(epsilon_greedy=schedule)
    data = agent.preprocess_sequence(collect(agent, "mmmm")[0])
    agent.train(data)
    assert float(agent.diagnose()["epsilon"]) == 0.75


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"lambda_value": 1.5}, "lambda_value: expected .* got 1.5; 0.65 and 0.95"),
        ({"epsilon_greedy": -0.1}, "epsilon_greedy: expected .* got -0.1"),
        ({"gamma": 2.0}, "gamma: expected .* got 2.0"),
        ({"gradient_clipping": 0.0}, "gradient_clipping: expected .* got 0.0"),
    ],
)
def test_a_number_out_of_range_is_an_error(settings, text):
    with pytest.raises(ValueError, match=text):
        make(**settings)


def test_continuous_actions_are_an_error():
    force = tensor_spec.BoundedTensorSpec([], tf.float32, -1.0, 1.0)
    with pytest.raises(ValueError, match=r"action_spec: got .* a Q-network needs disc"):
        PqnAgent(ts.time_step_spec(OBSERVATION), force, identity(), None)


def test_a_single_frame_is_an_error():
    agent = make()
    frames, _ = collect(agent, "f")
    with pytest.raises(ValueError, match=r"expected at least 2 frames .* got 1"):
        agent.preprocess_sequence(frames)
