"""Facts about environments that are broken in known ways."""

import random

import gymnasium
import numpy as np
import pytest

from tfrl.environments import suite_gym
from tfrl.eval import environment_facts


class Mass(gymnasium.Env):
    """A mass on a line, which an action in [-1, 1] moves; starts at random."""

    def __init__(self, act=lambda env, action: action, see=lambda env: env.position):
        self.observation_space = gymnasium.spaces.Box(-9.0, 9.0, (1,), np.float32)
        self.action_space = gymnasium.spaces.Box(-1.0, 1.0, (1,), np.float32)
        self.act, self.see = act, see

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.first = self.position = self.np_random.uniform(-1, 1)
        return self.observed(), {}

    def step(self, action):
        self.position += 0.1 * float(self.act(self, action[0]))
        return self.observed(), -abs(self.position), False, False, {}

    def observed(self):
        return np.array([self.see(self)], np.float32)


def find(make, **kwargs):
    def copy():
        return suite_gym.wrap_env(make())

    return environment_facts.find(copy, **kwargs)


def test_a_sound_environment():
    facts = find(lambda: gymnasium.wrappers.TimeLimit(Mass(), 30))
    low, high = facts.pop("reward_range")
    assert -4 < low < high < 0
    assert facts.pop("observation_correlation") > 0.8
    assert facts == {
        "observation_changes": True,
        "actions_matter": True,
        "observation_follows_actions": True,
        "own_bounds_reached": 1.0,
        "time_limit": 30,
    }


@pytest.mark.parametrize(
    ("arguments", "facts"),
    [
        ({"see": lambda env: env.first}, {"observation_changes": False}),
        ({"see": lambda env: env.first}, {"observation_follows_actions": False}),
        ({"act": lambda env, action: 0.3}, {"actions_matter": False}),
        # Random actions of its own, which its seed repeats, or does not.
        (
            {"act": lambda env, action: env.np_random.normal()},
            {"actions_matter": False},
        ),
        ({"act": lambda env, action: random.gauss()}, {"actions_matter": False}),
        ({"act": lambda env, action: max(action, 0)}, {"dead_actions": ["lowest"]}),
        (
            {"act": lambda env, action: action + 0.1 * random.gauss()},
            {"actions_matter": True},
        ),
    ],
)
def test_what_is_broken_is_a_fact(arguments, facts):
    found = find(lambda: Mass(**arguments))
    assert {name: found[name] for name in facts} == facts


def test_noise_has_no_correlation_with_itself():
    found = find(lambda: Mass(see=lambda env: env.np_random.normal()))
    assert found["observation_correlation"] < 0.4
    assert found["observation_follows_actions"] is False


def test_bounds_of_a_wrapper_that_reach_a_part_of_the_environments_own():
    class OtherBounds(gymnasium.Wrapper):
        action_space = gymnasium.spaces.Box(0.0, 0.5, (1,), np.float32)

    assert find(lambda: OtherBounds(Mass()))["own_bounds_reached"] == 0.25
    rescaled = find(
        lambda: gymnasium.wrappers.RescaleAction(
            Mass(), np.float32(0.0), np.float32(0.5)
        )
    )
    assert rescaled["own_bounds_reached"] == 1.0


@pytest.mark.parametrize(
    ("arguments", "differs"),
    [
        ({}, []),
        ({"see": lambda env: -env.position}, ["observations"]),
        ({"act": lambda env, action: -action}, ["observations", "rewards"]),
    ],
)
def test_another_environment_for_evaluation(arguments, differs):
    found = find(Mass, make_evaluation=lambda: suite_gym.wrap_env(Mass(**arguments)))
    assert found["evaluation_differs"] == differs


def test_a_failing_environment_gives_no_facts_and_random_generators_are_kept():
    def fail(env, action):
        np.random.normal()
        random.random()
        raise ValueError("broken")

    states = random.getstate(), np.random.get_state()[1].tolist()
    assert find(lambda: Mass(act=fail)) == {}
    assert (random.getstate(), np.random.get_state()[1].tolist()) == states


def test_a_slow_environment_gives_no_facts(monkeypatch):
    monkeypatch.setattr(environment_facts, "_SECONDS", -1.0)
    assert find(Mass) == {}
