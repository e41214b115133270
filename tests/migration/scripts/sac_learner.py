"""SAC on Pendulum: an actor, a replay server and a learner."""

import os
import tempfile

import reverb
import tensorflow as tf
from tf_agents.agents.ddpg import critic_network
from tf_agents.agents.sac import sac_agent, tanh_normal_projection_network
from tf_agents.environments import suite_gym
from tf_agents.metrics import py_metrics
from tf_agents.networks import actor_distribution_network
from tf_agents.policies import greedy_policy, py_tf_eager_policy, random_py_policy
from tf_agents.replay_buffers import reverb_replay_buffer, reverb_utils
from tf_agents.train import actor, learner, triggers
from tf_agents.train.utils import spec_utils, strategy_utils, train_utils

root_dir = tempfile.mkdtemp()
num_iterations = 12
eval_interval = 6
collect_env = suite_gym.load("Pendulum-v1")
eval_env = suite_gym.load("Pendulum-v1", max_episode_steps=20)
observation_spec, action_spec, time_step_spec = spec_utils.get_tensor_specs(collect_env)
strategy = strategy_utils.get_strategy(tpu=False, use_gpu=False)

with strategy.scope():
    train_step = train_utils.create_train_step()
    agent = sac_agent.SacAgent(
        time_step_spec,
        action_spec,
        actor_network=actor_distribution_network.ActorDistributionNetwork(
            observation_spec,
            action_spec,
            fc_layer_params=(8,),
            continuous_projection_net=(
                tanh_normal_projection_network.TanhNormalProjectionNetwork
            ),
        ),
        critic_network=critic_network.CriticNetwork(
            (observation_spec, action_spec), joint_fc_layer_params=(8,)
        ),
        actor_optimizer=tf.keras.optimizers.Adam(learning_rate=3e-4),
        critic_optimizer=tf.keras.optimizers.Adam(learning_rate=3e-4),
        alpha_optimizer=tf.keras.optimizers.Adam(learning_rate=3e-4),
        target_update_tau=0.005,
        gamma=0.99,
        train_step_counter=train_step,
    )
    agent.initialize()

table_name = "uniform_table"
table = reverb.Table(
    table_name,
    max_size=1000,
    sampler=reverb.selectors.Uniform(),
    remover=reverb.selectors.Fifo(),
    rate_limiter=reverb.rate_limiters.MinSize(1),
)
reverb_server = reverb.Server([table])
reverb_replay = reverb_replay_buffer.ReverbReplayBuffer(
    agent.collect_data_spec,
    sequence_length=2,
    table_name=table_name,
    local_server=reverb_server,
)
rb_observer = reverb_utils.ReverbAddTrajectoryObserver(
    reverb_replay.py_client, table_name, sequence_length=2, stride_length=1
)


def experience_dataset_fn():
    return reverb_replay.as_dataset(sample_batch_size=16, num_steps=2).prefetch(2)


saved_model_dir = os.path.join(root_dir, learner.POLICY_SAVED_MODEL_DIR)
env_step_metric = py_metrics.EnvironmentSteps()
agent_learner = learner.Learner(
    root_dir,
    train_step,
    agent,
    experience_dataset_fn,
    triggers=[
        triggers.PolicySavedModelTrigger(
            saved_model_dir,
            agent,
            train_step,
            interval=eval_interval,
            metadata_metrics={triggers.ENV_STEP_METADATA_KEY: env_step_metric},
        ),
        triggers.StepPerSecondLogTrigger(train_step, interval=eval_interval),
    ],
    checkpoint_interval=eval_interval,
    strategy=strategy,
)

initial_collect_actor = actor.Actor(
    collect_env,
    random_py_policy.RandomPyPolicy(
        collect_env.time_step_spec(), collect_env.action_spec()
    ),
    train_step,
    steps_per_run=30,
    observers=[rb_observer],
)
initial_collect_actor.run()
collect_actor = actor.Actor(
    collect_env,
    py_tf_eager_policy.PyTFEagerPolicy(agent.collect_policy, use_tf_function=True),
    train_step,
    steps_per_run=1,
    metrics=[*actor.collect_metrics(10), env_step_metric],
    summary_dir=os.path.join(root_dir, learner.TRAIN_DIR),
    observers=[rb_observer, env_step_metric],
)
eval_actor = actor.Actor(
    eval_env,
    py_tf_eager_policy.PyTFEagerPolicy(
        greedy_policy.GreedyPolicy(agent.policy), use_tf_function=True
    ),
    train_step,
    episodes_per_run=1,
    metrics=actor.eval_metrics(1),
    summary_dir=os.path.join(root_dir, "eval"),
)
for _ in range(num_iterations):
    collect_actor.run()
    loss_info = agent_learner.run(iterations=1)
    if agent_learner.train_step_numpy % eval_interval == 0:
        eval_actor.run_and_log()

assert agent_learner.train_step_numpy == num_iterations
assert tf.math.is_finite(loss_info.loss)
assert env_step_metric.result() == num_iterations
assert eval_actor.metrics[1].result() == 20
assert sorted(os.listdir(saved_model_dir)) == [
    "checkpoints",
    "collect_policy",
    "greedy_policy",
    "policy",
]
assert tf.train.latest_checkpoint(
    os.path.join(root_dir, learner.TRAIN_DIR, learner.POLICY_CHECKPOINT_DIR)
).endswith("ckpt-12")
collected = train_utils.wait_for_policy(
    os.path.join(saved_model_dir, learner.COLLECT_POLICY_SAVED_MODEL_DIR),
    sleep_time_secs=0,
    num_retries=2,
    load_specs_from_pbtxt=True,
)
collected.update_from_checkpoint(
    os.path.join(
        saved_model_dir, learner.POLICY_CHECKPOINT_DIR, "policy_checkpoint_0000000012"
    )
)
assert collected.get_metadata()[triggers.ENV_STEP_METADATA_KEY] == num_iterations
rb_observer.close()
reverb_server.stop()
