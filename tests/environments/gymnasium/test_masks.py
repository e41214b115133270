"""Masks in infos or by a method, which become a part of observations."""

import copy
import pickle

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

from tfrl.environments import suite_gym
from tfrl.environments.gymnasium import masks


class Game(gymnasium.Env):
    """Ends after two steps; `told` are the masks after the reset and the steps."""

    observation_space = spaces.Box(-1, 1, (2,), np.float32)
    action_space = spaces.Discrete(3)
    told = ([1, 0, 1], [0, 1, 0], [0, 0, 0])

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.steps = 0
        return self.seen(), self.infos()

    def step(self, action):
        self.steps += 1
        return self.seen(), 1.0, self.steps == 2, False, self.infos()

    def seen(self):
        return self.observation_space.sample()

    def infos(self):
        return {}


class InInfos(Game):
    def infos(self):
        return {"action_mask": np.array(self.told[self.steps], np.int8)}


class ByMethod(Game):
    def action_masks(self):
        return np.array(self.told[self.steps], bool)


class OfParts(ByMethod):
    observation_space = spaces.Dict(a=spaces.Discrete(2), b=spaces.Discrete(4))


def kind(base, **values):
    return type("Own", (base,), values)


@pytest.mark.parametrize("made", [InInfos, ByMethod, OfParts])
def test_a_mask_is_a_part_of_the_observation(made):
    env = masks.with_mask(gymnasium.wrappers.TimeLimit(made(), 9))
    observation, _ = env.reset(seed=0)
    names = {"a", "b"} if made is OfParts else {"observation"}
    assert set(observation) == {*names, "action_mask"}
    found = [observation, env.step(0)[0], env.step(1)[0]]
    # No action follows the last observation.
    expected = [[1, 0, 1], [0, 1, 0], [1, 1, 1]]
    assert [each["action_mask"].tolist() for each in found] == expected
    assert all(map(env.observation_space.contains, found))


@pytest.mark.parametrize("made", [InInfos, ByMethod])
def test_a_copy_tells_the_masks_of_its_own_environment(made):
    env = masks.with_mask(made())
    env.reset(seed=0)
    copied = copy.deepcopy(env)
    assert pickle.loads(pickle.dumps(env)).reset()[0]["action_mask"].tolist() == [
        1,
        0,
        1,
    ]
    env.step(0)
    assert copied.reset()[0]["action_mask"].tolist() == [1, 0, 1]


def test_a_mask_is_restored_with_the_environments_state():
    class Saved(ByMethod):
        def get_state(self):
            return self.steps

        def set_state(self, state):
            self.steps = state

    environment = suite_gym.wrap_env(masks.with_mask(Saved()))
    environment.reset()
    environment.step(0)
    state = environment.get_state()
    environment.reset()
    environment.set_state(state)
    last = environment.step(1)
    assert last.is_last()


@pytest.mark.parametrize(
    "env",
    [
        Game(),
        kind(ByMethod, action_space=spaces.MultiDiscrete([2, 2]))(),
        kind(
            ByMethod,
            observation_space=spaces.Dict(action_mask=spaces.MultiBinary(3)),
        )(),
        gymnasium.make("Taxi-v4"),  # Its masks are hints.
    ],
)
def test_environments_without_masks_of_their_own_are_left(env):
    assert masks.with_mask(env) is env


@pytest.mark.parametrize(
    ("told", "message"),
    [
        ([0, 0, 0], "action_mask: got no legal action"),
        ([1, 0], r"got array\(\[1, 0\], dtype=int8\), expected .* each of the 3"),
        ([2, 0, 1], "expected 0 or 1"),
    ],
)
def test_wrong_masks_are_errors(told, message):
    env = masks.with_mask(kind(InInfos, told=[told, *InInfos.told])())
    with pytest.raises(ValueError, match=message):
        env.reset()
