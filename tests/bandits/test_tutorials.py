"""The calls of TF-Agents' tutorials on bandits, in their order."""

import numpy as np
import pytest
import tensorflow as tf

from tfrl.bandits.agents import ranking_agent
from tfrl.bandits.environments import ranking_environment
from tfrl.bandits.networks import global_and_arm_feature_network
from tfrl.bandits.replay_buffers import bandit_replay_buffer
from tfrl.drivers import dynamic_step_driver
from tfrl.environments import tf_py_environment
from tfrl.metrics import tf_metrics

pytestmark = pytest.mark.slow


def _slotted(frame):
    """Returns a frame, or its specs, with the features of the ranked items alone."""
    items = frame.observation["per_arm"]
    if isinstance(items, tf.TensorSpec):
        items = tf.TensorSpec([2, items.shape[-1]], items.dtype)
    else:
        items = tf.gather(items, frame.action, batch_dims=1)
    observation = {"global": frame.observation["global"], "per_arm": items}
    return frame._replace(observation=observation, action=(), policy_info=())


@pytest.mark.parametrize("policy_type", list(ranking_agent.RankingPolicyType)[1:])
def test_ranking(policy_type):
    rng = np.random.default_rng(0)
    environment = tf_py_environment.TFPyEnvironment(
        ranking_environment.RankingPyEnvironment(
            lambda: rng.integers(-1, 2, 3).astype(np.float32),
            lambda: rng.integers(-2, 3, 4).astype(np.float32),
            num_items=5,
            num_slots=2,
            scores_weight_matrix=np.eye(4, 3, dtype=np.float32),
            feedback_model=ranking_environment.FeedbackModel.CASCADING,
            click_model=ranking_environment.ClickModel.GHOST_ACTIONS,
            batch_size=8,
        )
    )
    network = global_and_arm_feature_network.create_feed_forward_common_tower_network(
        environment.observation_spec(), (4,), (4,), (4,)
    )
    agent = ranking_agent.RankingAgent(
        time_step_spec=environment.time_step_spec(),
        action_spec=environment.action_spec(),
        scoring_network=network,
        optimizer=tf.compat.v1.train.AdamOptimizer(learning_rate=0.05),
        feedback_model=ranking_agent.FeedbackModel.CASCADING,
        policy_type=policy_type,
        summarize_grads_and_vars=True,
    )
    buffer = bandit_replay_buffer.BanditReplayBuffer(
        data_spec=_slotted(agent.policy.trajectory_spec), batch_size=8, max_length=2
    )
    metric = tf_metrics.AverageReturnMultiMetric(
        reward_spec=environment.reward_spec(), batch_size=8, buffer_size=20
    )
    driver = dynamic_step_driver.DynamicStepDriver(
        env=environment,
        policy=agent.collect_policy,
        num_steps=2 * 8,
        observers=[lambda frame: buffer.add_batch(_slotted(frame)), metric],
    )
    losses = []
    for _ in range(8):
        driver.run()
        losses.append(float(agent.train(buffer.gather_all()).loss))
        buffer.clear()
    assert 0 <= metric.result()["chosen_value"] <= 1
    assert np.mean(losses[-2:]) < losses[0]
