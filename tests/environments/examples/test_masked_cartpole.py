"""CartPole without velocities, as Gymnasium's CartPole beside it."""

import gymnasium
import numpy as np
import pytest

from tfrl.environments import suite_gym
from tfrl.environments.examples import masked_cartpole


@pytest.mark.parametrize(("version", "steps"), [("v0", 200), ("v1", 500)])
def test_it_shows_positions_alone(version, steps):
    masked = gymnasium.make(f"MaskedCartPole-{version}")
    assert masked.spec.max_episode_steps == steps
    whole = gymnasium.make("CartPole-v1")
    for env in (masked, whole):
        env.reset(seed=3)
    for action in (0, 1, 1):
        shown, everything = masked.step(action)[0], whole.step(action)[0]
        np.testing.assert_array_equal(shown, everything[[0, 2]])
        assert masked.observation_space.contains(shown)


def test_the_suite_loads_it_to_draw_pictures():
    env = suite_gym.load("MaskedCartPole-v0")
    assert isinstance(env.gym.env, masked_cartpole.MaskedCartPoleEnv)
    assert env.reset().observation.shape == (2,)
    assert env.render().shape == (400, 600, 3)
