"""The loop that only collects."""

import itertools

import numpy as np

from tests.agents.every_agent import KINDS
from tfrl import train
from tfrl.environments import native


def test_it_shows_every_step_and_trains_nothing():
    environment = native.load("CartPole-v1", batch_size=3, seed=1)
    agent = KINDS["A2CAgent"].make(
        environment.time_step_spec(), environment.action_spec()
    )
    before = [variable.numpy() for variable in agent.variables()]
    frames = []
    loop = train.CollectLoop(
        environment, agent, [train.host_observer(frames.append)], seed=2
    )
    loop.collect(3)
    info = loop.run(2)
    loop.collect(2)
    assert (info.iteration, info.train_steps) == (5, 0)
    assert len(frames) == 7
    assert frames[0].observation.shape == (3, 4)
    assert frames[0].policy_info["dist_params"]["logits"].shape == (3, 2)
    for earlier, later in itertools.pairwise(frames):
        np.testing.assert_array_equal(earlier.next_step_type, later.step_type)
    for variable, value in zip(agent.variables(), before, strict=True):
        np.testing.assert_array_equal(variable.numpy(), value)
