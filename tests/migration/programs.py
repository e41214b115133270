"""Writes small programs as users of TF-Agents write them, in `tf_agents`' names.

Each program is made of parts, which vary independently: the environment, the agent with
its networks, the optimizer, the loss of TD errors, and the way data is collected. The
functions of this module return the programs' source; `renamed` applies the commands of
`docs/from_tf_agents.md` to it.
"""

import pathlib
import re
import shlex
import subprocess

PAGE = pathlib.Path(__file__).parents[2] / "docs/from_tf_agents.md"

HEAD = """
import gym
import numpy as np
import tensorflow as tf
from tf_agents.agents.categorical_dqn import categorical_dqn_agent
from tf_agents.agents.cql import cql_sac_agent
from tf_agents.agents.ddpg import actor_network, critic_network, ddpg_agent
from tf_agents.agents.dqn import dqn_agent
from tf_agents.agents.sac import sac_agent, tanh_normal_projection_network
from tf_agents.agents.td3 import td3_agent
from tf_agents.drivers import dynamic_episode_driver, dynamic_step_driver, py_driver
from tf_agents.environments import gym_wrapper, py_environment, suite_gym
from tf_agents.environments import tf_py_environment, wrappers
from tf_agents.networks import actor_distribution_network, categorical_q_network
from tf_agents.networks import encoding_network, network, q_network, q_rnn_network
from tf_agents.networks import sequential
from tf_agents.policies import py_tf_eager_policy, random_tf_policy
from tf_agents.replay_buffers import tf_uniform_replay_buffer
from tf_agents.specs import array_spec
from tf_agents.trajectories import time_step as ts, trajectory
from tf_agents.utils import common
"""

# The environments, by the kind of their actions: each defines `py_env`.
DISCRETE = {
    "suite": 'py_env = suite_gym.load("CartPole-v0")',
    "gym": """
class Walk(gym.Env):
    def __init__(self):
        self.action_space = gym.spaces.Discrete(2)
        self.observation_space = gym.spaces.Box(-5.0, 5.0, (1,), np.float32)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.state = 0
        return np.array([self.state], np.float32), {}

    def step(self, action):
        self.state += 2 * int(action) - 1
        observation = np.array([self.state], np.float32)
        return observation, 1.0, abs(self.state) == 5, False, {}

py_env = wrappers.TimeLimit(gym_wrapper.GymWrapper(Walk()), 20)
""",
    "py_environment": """
class Line(py_environment.PyEnvironment):
    def __init__(self):
        super().__init__()
        self._action_spec = array_spec.BoundedArraySpec((), np.int32, 0, 1, "action")
        self._observation_spec = array_spec.BoundedArraySpec((1,), np.float32, 0, 9)
        self._state = 0
        self._episode_ended = False

    def action_spec(self):
        return self._action_spec

    def observation_spec(self):
        return self._observation_spec

    def _reset(self):
        self._state = 0
        self._episode_ended = False
        return ts.restart(np.array([self._state], dtype=np.float32))

    def _step(self, action):
        if self._episode_ended:
            return self.reset()
        self._state += int(action) + 1
        observation = np.array([min(self._state, 9)], dtype=np.float32)
        if self._state >= 9:
            self._episode_ended = True
            return ts.termination(observation, 1.0)
        return ts.transition(observation, reward=0.0, discount=1.0)

py_env = Line()
""",
    "history": """
py_env = wrappers.HistoryWrapper(suite_gym.load("CartPole-v1"), 3)
py_env = wrappers.ActionRepeat(wrappers.RunStats(py_env), times=2)
""",
    "masked": """
from tf_agents.environments.examples import masked_cartpole
py_env = suite_gym.load("MaskedCartPole-v0")
""",
}
CONTINUOUS = {
    "suite": 'py_env = suite_gym.load("Pendulum-v1", max_episode_steps=20)',
    "discretized": """
py_env = wrappers.ActionClipWrapper(suite_gym.load("Pendulum-v1"))
py_env = wrappers.TimeLimit(py_env, duration=20)
""",
}

SPECS = """
env = tf_py_environment.TFPyEnvironment(py_env)
observation_spec, action_spec = env.observation_spec(), env.action_spec()
"""

# The Q-networks: each defines `q_net`.
Q_NETWORKS = {
    "class": """
q_net = q_network.QNetwork(observation_spec, action_spec, fc_layer_params=(8,))
""",
    "numpy_sizes": """
sizes = np.array([8, 4])
q_net = q_network.QNetwork(observation_spec, action_spec, fc_layer_params=sizes)
""",
    "sequential": """
num_actions = int(action_spec.maximum - action_spec.minimum + 1)
layers = [tf.keras.layers.Flatten()] + [
    tf.keras.layers.Dense(
        units,
        activation=tf.keras.activations.relu,
        kernel_initializer=tf.keras.initializers.VarianceScaling(
            scale=2.0, mode="fan_in", distribution="truncated_normal"))
    for units in (8, 4)]
q_net = sequential.Sequential(layers + [tf.keras.layers.Dense(
    num_actions,
    activation=None,
    kernel_initializer=tf.keras.initializers.RandomUniform(minval=-0.03, maxval=0.03),
    bias_initializer=tf.keras.initializers.Constant(-0.2))])
""",
    "own": """
class MyQNetwork(network.Network):
    def __init__(self, input_tensor_spec, action_spec, name="MyQNetwork"):
        super(MyQNetwork, self).__init__(
            input_tensor_spec=input_tensor_spec, state_spec=(), name=name)
        self._encoder = encoding_network.EncodingNetwork(
            input_tensor_spec, fc_layer_params=(8,))
        self._heads = []
        self._heads.append(tf.keras.layers.Dense(int(action_spec.maximum) + 1))

    def call(self, observation, step_type=None, network_state=(), training=False):
        state, network_state = self._encoder(
            observation, step_type=step_type, network_state=network_state)
        return self._heads[0](state), network_state

q_net = MyQNetwork(observation_spec, action_spec)
""",
    "configurable": """
import functools

def configurable(cls):
    wrapped = cls.__init__
    @functools.wraps(wrapped)
    def wrapper(*args, **kwargs):
        return wrapped(*args, **kwargs)
    cls.__init__ = wrapper
    return cls

@configurable
class ConfigurableQNetwork(q_network.QNetwork):
    def __init__(self, input_tensor_spec, action_spec, name="Q"):
        super().__init__(input_tensor_spec, action_spec, fc_layer_params=(8,),
                         name=name)

q_net = ConfigurableQNetwork(observation_spec, action_spec)
""",
    "recurrent": """
q_net = q_rnn_network.QRnnNetwork(
    observation_spec, action_spec, input_fc_layer_params=(6,), lstm_size=(5,),
    output_fc_layer_params=(4,))
""",
}

LOSSES = {
    "squared": "common.element_wise_squared_loss",
    "huber": "common.element_wise_huber_loss",
    "keras": 'tf.keras.losses.Huber(reduction="none")',
    "keras_mean": "tf.keras.losses.MeanSquaredError()",
    "keras_function": "tf.keras.losses.huber",
    "v1": "tf.compat.v1.losses.huber_loss",
    "v1_squared": "tf.compat.v1.losses.mean_squared_error",
    "difference": "tf.math.squared_difference",
    "lambda": "lambda y, q: tf.reduce_mean(tf.square(y - q))",
    "none": "None",
}
OPTIMIZERS = {
    "keras": "tf.keras.optimizers.Adam(learning_rate=1e-3)",
    "schedule": (
        "tf.keras.optimizers.RMSprop("
        "tf.keras.optimizers.schedules.ExponentialDecay(1e-3, 100, 0.9))"
    ),
    "v1": "tf.compat.v1.train.AdamOptimizer(learning_rate=1e-3)",
    "v1_rmsprop": "tf.compat.v1.train.RMSPropOptimizer(1e-3, momentum=0.5)",
}

Q_AGENTS = {
    "dqn": "dqn_agent.DqnAgent",
    "ddqn": "dqn_agent.DdqnAgent",
}
Q_AGENT = """
train_step_counter = tf.Variable(0)
agent = {agent}(
    env.time_step_spec(), action_spec, q_network=q_net, optimizer={optimizer},
    td_errors_loss_fn={loss}, gamma=0.99, n_step_update=1.0, target_update_tau=0.5,
    target_update_period=2000.0, train_step_counter=train_step_counter,
    epsilon_greedy=lambda: tf.constant(0.1))
"""
C51_AGENT = """
agent = categorical_dqn_agent.CategoricalDqnAgent(
    env.time_step_spec(), action_spec,
    categorical_q_network=categorical_q_network.CategoricalQNetwork(
        observation_spec, action_spec, num_atoms=np.int64(11), fc_layer_params=(8,)),
    optimizer={optimizer}, td_errors_loss_fn={loss}, min_q_value=-20, max_q_value=20,
    n_step_update=2, gamma=0.99)
"""
ACTOR_CRITICS = {
    "ddpg": """
agent = ddpg_agent.DdpgAgent(
    env.time_step_spec(), action_spec,
    actor_network=actor_network.ActorNetwork(
        observation_spec, action_spec, fc_layer_params=(8,)),
    critic_network=critic_network.CriticNetwork(
        (observation_spec, action_spec), joint_fc_layer_params=(8,)),
    actor_optimizer={optimizer}, critic_optimizer={optimizer}, ou_stddev=0.2,
    ou_damping=0.15, target_update_tau=0.05, td_errors_loss_fn={loss}, gamma=0.99)
""",
    "td3": """
agent = td3_agent.Td3Agent(
    env.time_step_spec(), action_spec,
    actor_network=actor_network.ActorNetwork(
        observation_spec, action_spec, fc_layer_params=(8,)),
    critic_network=critic_network.CriticNetwork(
        (observation_spec, action_spec), joint_fc_layer_params=(8,)),
    actor_optimizer={optimizer}, critic_optimizer={optimizer},
    target_update_period=5.0, td_errors_loss_fn={loss}, gamma=0.99)
""",
    "sac": """
agent = sac_agent.SacAgent(
    env.time_step_spec(), action_spec,
    critic_network=critic_network.CriticNetwork(
        (observation_spec, action_spec), joint_fc_layer_params=(8,)),
    actor_network=actor_distribution_network.ActorDistributionNetwork(
        observation_spec, action_spec, fc_layer_params=(8,),
        continuous_projection_net=(
            tanh_normal_projection_network.TanhNormalProjectionNetwork)),
    actor_optimizer={optimizer}, critic_optimizer={optimizer},
    alpha_optimizer={optimizer}, target_update_tau=0.005, td_errors_loss_fn={loss},
    gamma=0.99)
""",
}

BUFFER = """
agent.initialize()
random_policy = random_tf_policy.RandomTFPolicy(env.time_step_spec(), action_spec)
replay_buffer = tf_uniform_replay_buffer.TFUniformReplayBuffer(
    data_spec=agent.collect_data_spec, batch_size=env.batch_size, max_length=200)
"""
# The ways to collect data.
COLLECTORS = {
    "step_driver": """
dynamic_step_driver.DynamicStepDriver(
    env, random_policy, observers=[replay_buffer.add_batch], num_steps=30).run()
driver = dynamic_step_driver.DynamicStepDriver(
    env, agent.collect_policy, observers=[replay_buffer.add_batch], num_steps=5)
driver.run = common.function(driver.run)
driver.run()
""",
    "episode_driver": """
dynamic_episode_driver.DynamicEpisodeDriver(
    env, agent.collect_policy, observers=[replay_buffer.add_batch],
    num_episodes=2).run()
""",
    "loop": """
policy_state = agent.collect_policy.get_initial_state(env.batch_size)
time_step = env.reset()
for _ in range(30):
    action_step = agent.collect_policy.action(time_step, policy_state)
    policy_state = action_step.state
    next_time_step = env.step(action_step.action)
    replay_buffer.add_batch(
        trajectory.from_transition(time_step, action_step, next_time_step))
    time_step = next_time_step
""",
    "py_driver": """
def add(traj):
    replay_buffer.add_batch(tf.nest.map_structure(lambda x: np.asarray(x)[None], traj))

py_driver.PyDriver(
    env.envs[0],
    py_tf_eager_policy.PyTFEagerPolicy(agent.collect_policy, use_tf_function=True),
    [add], max_steps=30).run(env.pyenv.envs[0].reset())
""",
}
TRAIN = """
num_steps = agent.train_sequence_length or 4
dataset = replay_buffer.as_dataset(
    num_parallel_calls=3, sample_batch_size=8, num_steps=num_steps).prefetch(3)
iterator = iter(dataset)
agent.train = common.function(agent.train)
for _ in range(2):
    experience, _ = next(iterator)
    loss = agent.train(experience).loss
assert np.isfinite(loss.numpy())

import tempfile
folder = tempfile.mkdtemp()
checkpointer = common.Checkpointer(
    ckpt_dir=folder, max_to_keep=1, agent=agent, policy=agent.policy,
    replay_buffer=replay_buffer)
checkpointer.save(global_step=agent.train_step_counter)
checkpointer.initialize_or_restore()
assert int(agent.train_step_counter) == 2
"""


def of_q_agent(
    agent="dqn",
    environment="suite",
    network="class",
    loss="squared",
    optimizer="keras",
    collector="step_driver",
):
    """Returns a program that trains an agent of DQN's family."""
    made = C51_AGENT if agent == "c51" else Q_NETWORKS[network] + Q_AGENT
    return _program(DISCRETE[environment], made, agent, loss, optimizer, collector)


def of_actor_critic(
    agent="sac",
    environment="suite",
    loss="difference",
    optimizer="v1",
    collector="step_driver",
):
    """Returns a program that trains an actor and critics."""
    environment, made = CONTINUOUS[environment], ACTOR_CRITICS[agent]
    return _program(environment, made, agent, loss, optimizer, collector)


def _program(environment, made, agent, loss, optimizer, collector):
    made = made.format(
        agent=Q_AGENTS.get(agent), loss=LOSSES[loss], optimizer=OPTIMIZERS[optimizer]
    )
    parts = HEAD, environment, SPECS, made, BUFFER, COLLECTORS[collector], TRAIN
    return "\n".join(parts)


def commands():
    """Returns the arguments of the page's `sed` commands, without files."""
    found = re.findall(r"^sed (-i .*?) your_script\.py$", PAGE.read_text(), re.M | re.S)
    return [
        [word for word in shlex.split(command) if word not in ("-i", "\n")]
        for command in found
    ]


def renamed(source):
    """Returns a program after the page's commands."""
    for arguments in commands():
        source = subprocess.run(
            ["sed", *arguments],
            input=source,
            capture_output=True,
            text=True,
            check=True,
        ).stdout
    return source
