"""Recurrent agents solve tasks that agents without memory cannot."""

import keras
import numpy as np
import pytest

from tfrl.agents import DqnAgent, PPOClipAgent, ReinforceAgent
from tfrl.agents.ppo import ppo_networks
from tfrl.environments import PyEnvironment, TFPyEnvironment
from tfrl.eval import Evaluator
from tfrl.networks import (
    ActorDistributionRnnNetwork,
    QNetwork,
    QRnnNetwork,
    ValueRnnNetwork,
)
from tfrl.replay_buffers import TFUniformReplayBuffer
from tfrl.specs import array_spec
from tfrl.train import EpisodicLoop, OffPolicyLoop, OnPolicyLoop
from tfrl.trajectories import time_step as ts

BATCH = 16


class TMaze(PyEnvironment):
    """A corridor at whose end the agent has to turn as a cue at its beginning said.

    Bakker, "Reinforcement learning with long short-term memory" (2001), section 5, with
    the walk through the corridor left to itself. Turning rightly gives 1, wrongly -1,
    and ends the episode. Without memory of the cue half the turns are right.
    """

    batched = True

    def __init__(self, length, seed, batch_size=BATCH):
        super().__init__()
        self._batch_size = batch_size
        self._length = length
        self._random = np.random.default_rng(seed)
        self._cue = np.zeros(batch_size, int)
        self._position = np.zeros(batch_size, int)
        self._ended = np.zeros(batch_size, bool)

    @property
    def batch_size(self):
        return self._batch_size

    def observation_spec(self):
        """The cue (-1, 1, or 0 after the first step) and whether this is the end."""
        return array_spec.ArraySpec([2], np.float32)

    def action_spec(self):
        return array_spec.BoundedArraySpec([], np.int32, 0, 1)

    def _reset(self):
        self._begin(np.ones_like(self._ended))
        return ts.restart(self._observe(), batch_size=self._batch_size)

    def _step(self, action):
        begins = self._ended
        self._ended = ~begins & (self._position == self._length)
        reward = np.where(self._ended, np.where(action == self._cue, 1, -1), 0)
        self._position = self._position + 1
        self._begin(begins)
        step_type = np.select(
            [begins, self._ended], [ts.StepType.FIRST, ts.StepType.LAST], 1
        )
        return ts.TimeStep(
            step_type.astype(np.int32),
            reward.astype(np.float32),
            np.where(self._ended, 0, 1).astype(np.float32),
            self._observe(),
        )

    def _begin(self, which):
        self._position = np.where(which, 0, self._position)
        new = self._random.integers(2, size=self._batch_size)
        self._cue = np.where(which, new, self._cue)
        self._ended = self._ended & ~which

    def _observe(self):
        cue = np.where(self._position == 0, 2 * self._cue - 1, 0)
        return np.stack([cue, self._position == self._length], 1).astype(np.float32)


SMALL = {
    "input_fc_layer_params": None,
    "lstm_size": (16,),
    "output_fc_layer_params": None,
}


def success(policy, length, seed=1000):
    """The share of 200 episodes in which a policy turns rightly."""
    env = TFPyEnvironment(TMaze(length, seed))
    return (1 + Evaluator(env, policy, 200, seed=0).run().mean) / 2


def trained_dqn(recurrent, length, iterations, seed=0):
    env = TFPyEnvironment(TMaze(length, seed))
    specs = env.observation_spec(), env.action_spec()
    agent = DqnAgent(
        env.time_step_spec(),
        env.action_spec(),
        QRnnNetwork(*specs, **SMALL, seed=seed)
        if recurrent
        else QNetwork(*specs, fc_layer_params=(32,), seed=seed),
        keras.optimizers.Adam(5e-3),
        epsilon_greedy=0.2,
        gamma=0.95,
        target_update_period=10,
        seed=seed,
    )
    agent.initialize()
    loop = OffPolicyLoop(
        env,
        agent,
        TFUniformReplayBuffer(agent.collect_data_spec, BATCH, 1000, seed=seed),
        collect_steps_per_iteration=4,
        initial_collect_steps=40 * BATCH,
        sample_batch_size=32,
        sampling="variables",
        # Long enough to hold a whole episode wherever it begins.
        sequence_length=2 * length + 3 if recurrent else None,
        seed=seed,
    )
    for _ in range(2):
        loop.run(iterations // 2)
    assert loop.trace_count() == 1
    return agent


@pytest.mark.slow
def test_recurrent_dqn_remembers_the_cue():
    agent = trained_dqn(recurrent=True, length=3, iterations=60)
    assert success(agent.policy, length=3) >= 0.95


@pytest.mark.slow
def test_feed_forward_dqn_cannot():
    agent = trained_dqn(recurrent=False, length=3, iterations=60)
    assert 0.35 < success(agent.policy, length=3) < 0.65


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_dqn_over_five_seeds_in_a_longer_maze():
    with_memory, without = (
        [
            success(trained_dqn(recurrent, 10, 300, seed).policy, 10, seed + 1000)
            for seed in range(5)
        ]
        for recurrent in (True, False)
    )
    assert min(with_memory) >= 0.95
    assert max(without) < 0.65


@pytest.mark.slow
def test_recurrent_reinforce_remembers_the_cue():
    env = TFPyEnvironment(TMaze(length=3, seed=0))
    observation, action = env.observation_spec(), env.action_spec()
    agent = ReinforceAgent(
        env.time_step_spec(),
        action,
        ActorDistributionRnnNetwork(observation, action, **SMALL, seed=0),
        keras.optimizers.Adam(1e-2),
        value_network=ValueRnnNetwork(observation, **SMALL, seed=1),
        gamma=0.95,
        seed=0,
    )
    loop = EpisodicLoop(
        env,
        agent,
        TFUniformReplayBuffer(agent.collect_data_spec, BATCH, 20),
        collect_episodes_per_iteration=2 * BATCH,
        seed=0,
    )
    for _ in range(2):
        loop.run(12)
    assert loop.trace_count() == 1
    assert success(agent.policy, length=3) >= 0.95


def trained_ppo(recurrent, length, iterations, seed=0):
    env = TFPyEnvironment(TMaze(length, seed))
    specs = env.observation_spec(), env.action_spec()
    networks = (
        (
            ActorDistributionRnnNetwork(*specs, **SMALL, seed=seed),
            ValueRnnNetwork(specs[0], **SMALL, seed=seed + 1),
        )
        if recurrent
        else ppo_networks.create_networks(*specs, (32,), seed=seed)
    )
    agent = PPOClipAgent(
        env.time_step_spec(),
        env.action_spec(),
        keras.optimizers.Adam(1e-2),
        *networks,
        importance_ratio_clipping=0.2,
        discount_factor=0.95,
        use_gae=True,
        use_td_lambda_return=True,
        normalize_observations=False,
        normalize_rewards=False,
        gradient_clipping=0.5,
        num_epochs=1,
        compute_value_and_advantage_in_train=False,
        update_normalizers_in_train=False,
        seed=seed,
    )
    steps = 5 * (length + 2)
    loop = OnPolicyLoop(
        env,
        agent,
        collect_steps_per_iteration=steps,
        num_epochs=4,
        minibatch_size=BATCH // 2 * steps,
        seed=seed,
    )
    for _ in range(2):
        loop.run(iterations // 2)
    assert loop.trace_count() == 1
    return agent


@pytest.mark.slow
def test_recurrent_ppo_remembers_the_cue():
    agent = trained_ppo(recurrent=True, length=3, iterations=20)
    assert success(agent.policy, length=3) >= 0.95


@pytest.mark.slow
def test_feed_forward_ppo_cannot():
    agent = trained_ppo(recurrent=False, length=3, iterations=20)
    assert 0.35 < success(agent.policy, length=3) < 0.65


@pytest.mark.parametrize("length", [None, 1])
def test_a_recurrent_agent_needs_a_sequence_length(length):
    env = TFPyEnvironment(TMaze(length=3, seed=0))
    specs = env.observation_spec(), env.action_spec()
    agent = DqnAgent(
        env.time_step_spec(),
        env.action_spec(),
        QRnnNetwork(*specs, **SMALL),
        keras.optimizers.Adam(),
    )
    buffer = TFUniformReplayBuffer(agent.collect_data_spec, BATCH, 20)
    with pytest.raises(
        ValueError, match=f"sequence_length: got {length}, expected 2 o"
    ):
        OffPolicyLoop(env, agent, buffer, sequence_length=length)


def test_other_agents_have_theirs():
    env = TFPyEnvironment(TMaze(length=3, seed=0))
    specs = env.observation_spec(), env.action_spec()
    agent = DqnAgent(
        env.time_step_spec(),
        env.action_spec(),
        QNetwork(*specs),
        keras.optimizers.Adam(),
    )
    buffer = TFUniformReplayBuffer(agent.collect_data_spec, BATCH, 20)
    with pytest.raises(ValueError, match="sequence_length: got 5, expected 2, since"):
        OffPolicyLoop(env, agent, buffer, sequence_length=5)
