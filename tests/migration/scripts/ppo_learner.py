"""PPO on CartPole: sequences by way of two queues, and minibatches."""

import os
import tempfile

import reverb
import tensorflow as tf
from tf_agents.agents.ppo import ppo_clip_agent
from tf_agents.environments import suite_gym
from tf_agents.metrics import py_metrics
from tf_agents.networks import actor_distribution_network, value_network
from tf_agents.policies import py_tf_eager_policy
from tf_agents.replay_buffers import reverb_replay_buffer, reverb_utils
from tf_agents.train import actor, learner, ppo_learner, triggers
from tf_agents.train.utils import spec_utils, train_utils

root_dir = tempfile.mkdtemp()
collect_sequence_length = 33
num_epochs = 2
collect_env = suite_gym.load("CartPole-v1")
observation_spec, action_spec, time_step_spec = spec_utils.get_tensor_specs(collect_env)
train_step = train_utils.create_train_step()
agent = ppo_clip_agent.PPOClipAgent(
    time_step_spec,
    action_spec,
    optimizer=tf.keras.optimizers.Adam(learning_rate=1e-3, epsilon=1e-5),
    actor_net=actor_distribution_network.ActorDistributionNetwork(
        observation_spec, action_spec, fc_layer_params=(8,)
    ),
    value_net=value_network.ValueNetwork(observation_spec, fc_layer_params=(8,)),
    greedy_eval=False,
    importance_ratio_clipping=0.2,
    lambda_value=0.95,
    discount_factor=0.99,
    entropy_regularization=0.0,
    gradient_clipping=0.5,
    use_gae=True,
    use_td_lambda_return=True,
    # The learner does all of these.
    num_epochs=1,
    compute_value_and_advantage_in_train=False,
    update_normalizers_in_train=False,
    train_step_counter=train_step,
)
agent.initialize()

tables = ["training_table", "normalization_table"]
reverb_server = reverb.Server(
    [
        reverb.Table(
            name,
            sampler=reverb.selectors.Fifo(),
            remover=reverb.selectors.Fifo(),
            rate_limiter=reverb.rate_limiters.MinSize(1),
            max_size=1,
            max_times_sampled=1,
        )
        for name in tables
    ]
)
reverb_replay_train, reverb_replay_normalization = (
    reverb_replay_buffer.ReverbReplayBuffer(
        agent.collect_data_spec,
        sequence_length=collect_sequence_length,
        table_name=name,
        server_address=f"localhost:{reverb_server.port}",
        max_cycle_length=1,
        rate_limiter_timeout_ms=1000,
    )
    for name in tables
)
rb_observer = reverb_utils.ReverbTrajectorySequenceObserver(
    reverb_replay_train.py_client, tables, sequence_length=collect_sequence_length
)


def training_dataset_fn():
    return reverb_replay_train.as_dataset(
        sample_batch_size=1, sequence_preprocess_fn=agent.preprocess_sequence
    )


def normalization_dataset_fn():
    return reverb_replay_normalization.as_dataset(
        sample_batch_size=1, sequence_preprocess_fn=agent.preprocess_sequence
    )


agent_learner = ppo_learner.PPOLearner(
    root_dir,
    train_step,
    agent,
    experience_dataset_fn=training_dataset_fn,
    normalization_dataset_fn=normalization_dataset_fn,
    num_samples=1,
    num_epochs=num_epochs,
    minibatch_size=8,
    shuffle_buffer_size=collect_sequence_length,
    triggers=[triggers.StepPerSecondLogTrigger(train_step, interval=8)],
    checkpoint_interval=8,
)
env_step_metric = py_metrics.EnvironmentSteps()
collect_actor = actor.Actor(
    collect_env,
    py_tf_eager_policy.PyTFEagerPolicy(agent.collect_policy, use_tf_function=True),
    train_step,
    steps_per_run=collect_sequence_length,
    observers=[rb_observer],
    metrics=[*actor.collect_metrics(10), env_step_metric],
    reference_metrics=[env_step_metric],
    summary_dir=os.path.join(root_dir, learner.TRAIN_DIR),
    summary_interval=8,
)
for _ in range(2):
    collect_actor.run()
    rb_observer.flush()
    loss_info = agent_learner.run()
    reverb_replay_train.clear()
    reverb_replay_normalization.clear()

# Two runs of two epochs of about 32 steps in minibatches of 8.
assert 8 <= agent_learner.train_step_numpy <= 20
assert tf.math.is_finite(loss_info.loss)
assert env_step_metric.result() == 2 * collect_sequence_length
reverb_server.stop()
