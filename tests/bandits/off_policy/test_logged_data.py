"""A table becomes the experience that agents learn from."""

import numpy as np
import pytest
import tensorflow as tf

from tests.bandits import bandit_data as data
from tfrl.bandits import agents, off_policy


def test_an_agent_learns_from_a_table_what_it_learns_from_frames():
    x, action, reward = data.rows(10, 3, 4)
    log = off_policy.LoggedData(x, action, reward, np.full(10, 0.25))
    agent, other = (
        agents.LinearUCBAgent(data.time_step_spec(3), data.action_spec(4))
        for _ in range(2)
    )
    sizes = []
    for frames in log.as_dataset(agent, batch_size=4):
        sizes.append(frames.action.shape[0])
        agent.train(frames)
    assert sizes == [4, 4, 2]
    other.train(data.experience(x[:, None], action[:, None], reward[:, None]))
    np.testing.assert_allclose(agent.theta, other.theta, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("first", [1, 0.5, -1])
def test_arms_that_there_are_not_are_refused_where_they_enter(first):
    x, action, reward = data.rows(10, 3, 4)
    wrong = np.where(np.arange(10) == 9, 3, action) + first
    agent = agents.LinearUCBAgent(data.time_step_spec(3), data.action_spec(4))
    with pytest.raises(ValueError, match=r"^(reward, )?action: .*from 0"):
        off_policy.LoggedData(x, wrong, reward, np.full(10, 0.25)).as_dataset(agent, 4)
    if first != 0.5:
        frames = data.experience(x[:, None], wrong[:, None], reward[:, None])
        with pytest.raises(
            ValueError, match=r"^experience\.action: got .* 0 to 3, each"
        ):
            agent.train(frames)


def test_the_info_has_the_propensity_and_the_features_of_the_chosen_arm():
    rng = np.random.default_rng(0)
    spec = data.per_arm_spec(2, 3, 4, has_number=True)
    agent = agents.LinearThompsonSamplingAgent(
        spec,
        data.action_spec(4),
        accepts_per_arm_features=True,
        emit_log_probability=True,
        emit_policy_info=("predicted_rewards_mean",),
    )
    arms = rng.normal(size=[6, 4, 3])
    observation = {
        "global": rng.normal(size=[6, 2]),
        "per_arm": arms,
        "num_actions": np.full(6, 4),
    }
    action = rng.integers(4, size=6)
    propensity = rng.uniform(0.1, 1.0, 6)
    log = off_policy.LoggedData(observation, action, np.ones(6), propensity)
    (frames,) = log.as_dataset(agent, batch_size=6)
    info = frames.policy_info
    np.testing.assert_allclose(
        info.log_probability[:, 0], np.log(propensity), rtol=1e-6
    )
    np.testing.assert_array_equal(
        info.chosen_arm_features[:, 0], np.float32(arms[np.arange(6), action])
    )
    np.testing.assert_array_equal(info.predicted_rewards_mean, np.zeros([6, 1, 4]))
    assert "per_arm" not in frames.observation
    assert frames.is_first().numpy().all()
    assert frames.is_last().numpy().all()
    before = np.array(agent.theta)
    agent.train(frames)
    assert np.any(agent.theta != before)


def test_rows_choose_rounds():
    x, action, reward = data.rows(10, 3, 4)
    log = off_policy.LoggedData({"a": x}, action, reward, np.full(10, 0.25))
    half = log.rows(np.arange(10) % 2 == 0)
    np.testing.assert_array_equal(half.observation["a"], x[::2])
    np.testing.assert_array_equal(half.action, action[::2])
    assert tf.nest.flatten(half)[0].shape == (5, 3)
