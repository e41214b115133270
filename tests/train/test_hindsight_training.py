"""Agents that learn from relabelled goals, in plain and in compiled loops."""

import numpy as np
import pytest
import tensorflow as tf

from tests.agents import every_agent
from tfrl import environments, train
from tfrl.environments import native
from tfrl.replay_buffers import (
    Hindsight,
    HostReward,
    TFPrioritizedReplayBuffer,
    TFUniformReplayBuffer,
)
from tfrl.specs import array_spec
from tfrl.train.loops import off_policy_loop
from tfrl.trajectories import time_step as ts


class Reach(environments.PyEnvironment):
    """A point on a line that steps towards a goal."""

    def __init__(self):
        super().__init__()
        self._rng = np.random.default_rng(0)
        self._place = self._goal = np.zeros(1, np.float32)
        self._steps = 0

    def observation_spec(self):
        spec = array_spec.ArraySpec((1,), np.float32)
        return {"achieved_goal": spec, "desired_goal": spec}

    def action_spec(self):
        return array_spec.BoundedArraySpec((1,), np.float32, -1, 1)

    def compute_reward(self, achieved_goal, desired_goal, info):
        return -np.abs(achieved_goal - desired_goal)[..., 0]

    def _observation(self):
        return {"achieved_goal": self._place, "desired_goal": self._goal}

    def _reset(self):
        self._place = np.zeros(1, np.float32)
        self._goal = self._rng.normal(size=1).astype(np.float32)
        self._steps = 0
        return ts.restart(self._observation())

    def _step(self, action):
        self._place = self._place + action
        self._steps += 1
        reward = self.compute_reward(self._place, self._goal, {})
        if self._steps == 5:
            return ts.truncation(self._observation(), reward)
        return ts.transition(self._observation(), reward)

    def get_state(self):
        return self._rng.bit_generator.state, self._place, self._goal, self._steps

    def set_state(self, state):
        self._rng.bit_generator.state, self._place, self._goal, self._steps = state


# All whose updates are of single steps or of sequences drawn from replay.
NAMES = [
    name
    for name, kind in every_agent.KINDS.items()
    if not kind.without_td_error and not kind.without_weights
]
FAST = ("DqnAgent", TFUniformReplayBuffer, False)
CASES = [
    FAST,
    *(
        pytest.param(*case, marks=pytest.mark.slow)
        for case in [
            ("DqnAgent", TFUniformReplayBuffer, True),
            *((name, TFPrioritizedReplayBuffer, True) for name in NAMES),
            *((name, TFUniformReplayBuffer, False) for name in NAMES),
        ]
        if case != FAST
    ),
]


def make_loop(name, kind, jit_compile, seed=1, row_format=None):
    if every_agent.KINDS[name].action_spec == every_agent.CHOICE:
        environment = native.load("BitFlipping4-v0", batch_size=2, seed=seed)
    else:
        environment = environments.TFPyEnvironment(Reach())
    agent = every_agent.KINDS[name].make(
        environment.time_step_spec(), environment.action_spec(), (8,), seed, 1e-2
    )
    replay_buffer = kind(
        agent.collect_data_spec,
        environment.batch_size,
        50,
        seed=seed,
        row_format=row_format or Hindsight.of(environment),
    )
    loop = off_policy_loop.OffPolicyLoop(
        environment,
        agent,
        replay_buffer,
        initial_collect_steps=30,
        sample_batch_size=8,
        sequence_length=4 if name.endswith("recurrent") else None,
        seed=seed,
        jit_compile=jit_compile,
    )
    return loop, [agent, replay_buffer]


def state_of(parts):
    return [v.numpy() for part in parts for v in part.variables()]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "kind", "jit_compile"), CASES)
def test_it_trains_and_goes_on_bit_for_bit(tmp_path, name, kind, jit_compile):
    loop, parts = make_loop(name, kind, jit_compile)
    loop.run(10)
    path = tf.train.Checkpoint(**loop.checkpoint_items()).write(str(tmp_path / "c"))
    loop.run(5)
    expected = state_of(parts)
    # XLA would take seconds for another loop.
    tf.train.Checkpoint(**loop.checkpoint_items()).read(path)
    loop.run(5)
    for one, other in zip(expected, state_of(parts), strict=True):
        np.testing.assert_array_equal(one, other)
        if one.dtype.kind == "f":
            assert np.isfinite(one).all()


def test_rewards_of_another_task_end_the_loop_before_the_first_update():
    wrong = Hindsight(lambda achieved, desired: tf.reduce_sum(achieved, -1))
    loop, _ = make_loop("DqnAgent", TFUniformReplayBuffer, False, row_format=wrong)
    with pytest.raises(ValueError, match=r"compute_reward .* the first 2\d steps"):
        loop.run(1)
    assert loop.iteration == 0


@pytest.mark.slow
def test_the_runs_of_a_sweep_relabel_as_alone():
    def make(seed):
        return make_loop("DqnAgent", TFPrioritizedReplayBuffer, True, seed)[0]

    result = train.sweep(
        make, [1, 2], num_iterations=10, eval_interval=10, num_eval_episodes=1
    )
    for run, seed in enumerate([1, 2]):
        loop, parts = make_loop("DqnAgent", TFPrioritizedReplayBuffer, True, seed)
        loop.run(10)
        items = result.restore(run).checkpoint_items()
        swept = [items["agent"], items["replay_buffer"]]
        for one, other in zip(state_of(swept), state_of(parts), strict=True):
            # XLA may add in another order.
            np.testing.assert_allclose(one, other, rtol=1e-3, atol=1e-4)


@pytest.mark.cpu
def test_rewards_on_the_host_are_refused_in_a_sweep():
    def make(seed):
        row_format = Hindsight(HostReward(Reach().compute_reward))
        buffer = TFUniformReplayBuffer
        return make_loop("DqnAgent", buffer, True, seed, row_format)[0]

    with pytest.raises(TypeError, match=r"row_format whose .* are on the host"):
        train.sweep(
            make, [1, 2], num_iterations=1, eval_interval=1, num_eval_episodes=1
        )
