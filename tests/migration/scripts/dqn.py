"""DQN on CartPole with a Python loop."""

import numpy as np
import tensorflow as tf
from tf_agents.agents.dqn import dqn_agent
from tf_agents.drivers import dynamic_step_driver
from tf_agents.environments import suite_gym, tf_py_environment
from tf_agents.networks import sequential
from tf_agents.policies import random_tf_policy
from tf_agents.replay_buffers import tf_uniform_replay_buffer
from tf_agents.specs import tensor_spec
from tf_agents.utils import common

num_iterations = 150
initial_collect_steps = 200
batch_size = 64
fc_layer_params = (100, 50)

train_env = tf_py_environment.TFPyEnvironment(suite_gym.load("CartPole-v0"))
eval_env = tf_py_environment.TFPyEnvironment(suite_gym.load("CartPole-v0"))
action_tensor_spec = tensor_spec.from_spec(suite_gym.load("CartPole-v0").action_spec())
num_actions = action_tensor_spec.maximum - action_tensor_spec.minimum + 1


def dense_layer(num_units):
    return tf.keras.layers.Dense(
        num_units,
        activation=tf.keras.activations.relu,
        kernel_initializer=tf.keras.initializers.VarianceScaling(
            scale=2.0, mode="fan_in", distribution="truncated_normal"
        ),
    )


dense_layers = [dense_layer(num_units) for num_units in fc_layer_params]
q_values_layer = tf.keras.layers.Dense(
    int(num_actions),
    activation=None,
    kernel_initializer=tf.keras.initializers.RandomUniform(minval=-0.03, maxval=0.03),
    bias_initializer=tf.keras.initializers.Constant(-0.2),
)
q_net = sequential.Sequential([*dense_layers, q_values_layer])
train_step_counter = tf.Variable(0)
agent = dqn_agent.DqnAgent(
    train_env.time_step_spec(),
    train_env.action_spec(),
    q_network=q_net,
    optimizer=tf.keras.optimizers.Adam(learning_rate=1e-3),
    td_errors_loss_fn=common.element_wise_squared_loss,
    train_step_counter=train_step_counter,
)
agent.initialize()
eval_policy = agent.policy
collect_policy = agent.collect_policy
random_policy = random_tf_policy.RandomTFPolicy(
    train_env.time_step_spec(), train_env.action_spec()
)


def compute_avg_return(environment, policy, num_episodes=10):
    total_return = 0.0
    for _ in range(num_episodes):
        time_step = environment.reset()
        episode_return = 0.0
        while not time_step.is_last():
            action_step = policy.action(time_step)
            time_step = environment.step(action_step.action)
            episode_return += time_step.reward
        total_return += episode_return
    return (total_return / num_episodes).numpy()[0]


assert 8 < compute_avg_return(eval_env, random_policy, 3) < 100

replay_buffer = tf_uniform_replay_buffer.TFUniformReplayBuffer(
    data_spec=agent.collect_data_spec,
    batch_size=train_env.batch_size,
    max_length=10_000,
)
assert agent.collect_data_spec._fields[0] == "step_type"
dynamic_step_driver.DynamicStepDriver(
    train_env,
    random_policy,
    observers=[replay_buffer.add_batch],
    num_steps=initial_collect_steps,
).run()
dataset = replay_buffer.as_dataset(
    num_parallel_calls=3, sample_batch_size=batch_size, num_steps=2
).prefetch(3)
iterator = iter(dataset)
agent.train = common.function(agent.train)
agent.train_step_counter.assign(0)
collect_driver = dynamic_step_driver.DynamicStepDriver(
    train_env, collect_policy, observers=[replay_buffer.add_batch], num_steps=1
)
time_step = train_env.reset()
losses = []
for _ in range(num_iterations):
    time_step, _ = collect_driver.run(time_step)
    experience, unused_info = next(iterator)
    losses.append(agent.train(experience).loss.numpy())
    step = agent.train_step_counter.numpy()
assert step == num_iterations
assert np.isfinite(losses).all()
assert compute_avg_return(eval_env, agent.policy, 2) >= 8
