"""Agents whose actions have several discrete parts, as Gymnasium's spaces have them."""

import gymnasium
import keras
import numpy as np
import pytest
import tensorflow as tf
from gymnasium import spaces

from tfrl import agents, networks, train
from tfrl.environments import suite_gym, tf_py_environment
from tfrl.replay_buffers import TFUniformReplayBuffer
from tfrl.specs import tensor_spec
from tfrl.trajectories import time_step as ts
from tfrl.trajectories import trajectory

# Each space, and the action that is rewarded.
SPACES = {
    "MultiDiscrete": (spaces.MultiDiscrete([3, 5], start=[0, 2]), np.array([2, 6])),
    "MultiBinary": (spaces.MultiBinary(3), np.array([1, 0, 1], np.int8)),
    "Tuple": (
        spaces.Tuple([spaces.Discrete(3), spaces.Discrete(2)]),
        (np.int64(2), np.int64(1)),
    ),
    "Dict": (
        spaces.Dict({"a": spaces.Discrete(2), "b": spaces.MultiDiscrete([2, 4])}),
        {"a": np.int64(1), "b": np.array([1, 3])},
    ),
}
SLOW = pytest.mark.slow


class Guessing(gymnasium.Env):
    """Rewards each part of an action that is right, in episodes of ten steps."""

    observation_space = spaces.Box(-1, 1, [1], np.float32)

    def __init__(self, space):
        self.action_space, self._right = SPACES[space]

    def reset(self, seed=None, options=None):
        super().reset(seed=seed)
        self._steps = 0
        return np.ones(1, np.float32), {}

    def step(self, action):
        assert self.action_space.contains(action)
        self._steps += 1
        right = spaces.flatten(self.action_space, self._right)
        reward = np.mean(spaces.flatten(self.action_space, action) == right)
        return np.ones(1, np.float32), float(reward), False, self._steps >= 10, {}


def make_loop(kind, environment):
    specs = environment.observation_spec(), environment.action_spec()
    step_spec, optimizer = environment.time_step_spec(), keras.optimizers.Adam(1e-2)
    if kind == "reinforce":
        net = networks.ActorDistributionNetwork(*specs, fc_layer_params=(8,), seed=0)
        agent = agents.ReinforceAgent(step_spec, specs[1], net, optimizer, seed=0)
        agent.initialize()
        buffer = TFUniformReplayBuffer(agent.collect_data_spec, 1, max_length=100)
        return train.EpisodicLoop(
            environment, agent, buffer, collect_episodes_per_iteration=4, seed=0
        )
    nets = agents.ppo.create_networks(*specs, fc_layer_params=(8,), seed=0)
    if kind == "a2c":
        agent = agents.A2CAgent(step_spec, specs[1], optimizer, *nets, seed=0)
    else:
        agent = agents.PPOClipAgent(
            step_spec,
            specs[1],
            optimizer,
            *nets,
            importance_ratio_clipping=0.2,
            num_epochs=1,
            compute_value_and_advantage_in_train=False,
            update_normalizers_in_train=False,
            seed=0,
        )
    agent.initialize()
    return train.OnPolicyLoop(
        environment,
        agent,
        collect_steps_per_iteration=40,
        num_epochs=4 if kind == "ppo" else 1,
        seed=0,
    )


@pytest.mark.parametrize(
    ("kind", "space"),
    [
        ("ppo", "Dict"),
        *(
            pytest.param(kind, space, marks=SLOW)
            for kind in ("ppo", "a2c", "reinforce")
            for space in SPACES
            if (kind, space) != ("ppo", "Dict")
        ),
    ],
)
def test_the_rewarded_action_is_found(kind, space):
    """The policy plays it, as an action of the environment's own space."""
    env = Guessing(space)
    environment = tf_py_environment.TFPyEnvironment(suite_gym.wrap_env(env))
    loop = make_loop(kind, environment)
    loop.run(60 if kind == "ppo" else 200)
    observation, _ = env.reset()
    action, _ = loop.agent.policy.predict(observation)
    assert env.step(action)[1] == 1.0


@pytest.mark.parametrize(
    "space",
    [
        pytest.param("MultiDiscrete", marks=SLOW),
        pytest.param("MultiBinary", marks=SLOW),
        "Tuple",
        "Dict",
    ],
)
def test_the_loss_of_cloning_is_the_likelihood_of_all_parts(space):
    """Against the sum of the parts' own log-probabilities; and an update lowers it."""
    env = suite_gym.wrap_env(Guessing(space))
    time_step_spec = tensor_spec.from_spec(env.time_step_spec())
    action_spec = tensor_spec.from_spec(env.action_spec())
    net = networks.ActorDistributionNetwork(
        time_step_spec.observation, action_spec, fc_layer_params=(8,), seed=0
    )
    agent = agents.BehavioralCloningAgent(
        time_step_spec,
        action_spec,
        cloning_network=net,
        optimizer=keras.optimizers.Adam(0.1),
    )
    right = tf.nest.map_structure(
        lambda spec, part: tf.constant(np.stack([part, part]), spec.dtype),
        action_spec,
        SPACES[space][1],
    )
    ones = tf.ones([2])
    batch = trajectory.mid(tf.ones([2, 1]), right, (), ones, ones)
    distributions, _ = net(batch.observation, step_type=batch.step_type)
    expected = sum(
        tf.reduce_sum(distribution.log_prob(action)) / 2
        for distribution, action in zip(
            tf.nest.flatten(distributions), tf.nest.flatten(right), strict=True
        )
    )
    np.testing.assert_allclose(agent.loss(batch).loss, -expected, rtol=1e-5)
    agent.train(batch)
    assert agent.loss(batch).loss < -expected


def test_a_flat_mask_of_several_choices():
    """The masks of all choices one after the other, as sb3-contrib has them."""
    action_spec = tensor_spec.BoundedTensorSpec([2], tf.int64, [0, 0], [2, 4])
    observation_spec = {
        "x": tf.TensorSpec([1], tf.float32),
        "mask": tf.TensorSpec([3 + 5], tf.bool),
    }
    agent = agents.PPOClipAgent(
        ts.time_step_spec(observation_spec),
        action_spec,
        keras.optimizers.Adam(1e-2),
        *agents.ppo.create_networks(observation_spec["x"], action_spec, seed=0),
        observation_and_action_constraint_splitter=lambda o: (o["x"], o["mask"]),
        num_epochs=1,
        seed=0,
    )
    masks = np.random.default_rng(0).random([200, 8]) < 0.3
    masks[:, [1, 6]] = True
    observation = {"x": tf.ones([200, 1]), "mask": tf.constant(masks)}
    step = ts.restart(observation, 200)
    for policy in (agent.policy, agent.collect_policy):
        first, second = policy.action(step, seed=1).action.numpy().T
        assert masks[np.arange(200), first].all()
        assert masks[np.arange(200), 3 + second].all()
