"""Agents whose actions have no bounds: nothing squashes or scales them."""

import gymnasium
import keras
import numpy as np
import pytest

from tfrl import agents, networks, train
from tfrl.environments import suite_gym, tf_py_environment
from tfrl.replay_buffers import TFUniformReplayBuffer

TARGET = 3.0
# The projection networks' tests are the fast ones.
pytestmark = pytest.mark.slow


class Target(gymnasium.Env):
    """Episodes of five steps, in which the best action is `TARGET`."""

    observation_space = gymnasium.spaces.Box(-1, 1, [2], np.float32)
    action_space = gymnasium.spaces.Box(-np.inf, np.inf, [2], np.float32)

    def reset(self, seed=None, options=None):
        super().reset(seed=seed)
        self.steps = 0
        return np.ones(2, np.float32), {}

    def step(self, action):
        assert np.isfinite(action).all()
        self.steps += 1
        reward = -np.mean(np.square(action - TARGET))
        return np.ones(2, np.float32), float(reward), False, self.steps >= 5, {}


@pytest.mark.parametrize(
    "kind", [agents.PPOAgent, agents.A2CAgent, agents.ReinforceAgent]
)
def test_actions_find_their_target(kind):
    environment = tf_py_environment.TFPyEnvironment(suite_gym.wrap_env(Target()))
    specs = environment.observation_spec(), environment.action_spec()
    time_step_spec = environment.time_step_spec()
    if kind is agents.ReinforceAgent:
        actor_net = networks.ActorDistributionNetwork(
            *specs, fc_layer_params=(8,), seed=1
        )
        optimizer = keras.optimizers.Adam(3e-2)
        agent = kind(time_step_spec, specs[1], actor_net, optimizer)
        buffer = TFUniformReplayBuffer(agent.collect_data_spec, 1, max_length=100)
        loop = train.EpisodicLoop(
            environment, agent, buffer, collect_episodes_per_iteration=8, seed=1
        )
    else:
        nets = agents.ppo.create_networks(*specs, seed=0)
        agent = kind(time_step_spec, specs[1], keras.optimizers.Adam(1e-2), *nets)
        loop = train.OnPolicyLoop(
            environment, agent, collect_steps_per_iteration=64, seed=1
        )
    agent.initialize()
    loop.run(60)
    time_step = environment.reset()
    action = agent.policy.action(time_step).action
    np.testing.assert_allclose(action, np.full([1, 2], TARGET), atol=0.8)
