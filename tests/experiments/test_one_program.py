"""What one program can train."""

import dataclasses

import pytest

from tests.environments.native.nim import nim
from tfrl.algorithms import registry
from tfrl.environments import native
from tfrl.experiments import one_program


@pytest.mark.parametrize(
    ("name", "environment", "searched", "values", "reason"),
    [
        ("dqn", "CartPole-v1", {"gamma"}, {}, ""),
        ("dqn", "BitFlipping4-v0", {"gamma"}, {}, ""),
        ("dqn", native.load("CartPole-v1").dynamics, {"gamma"}, {}, ""),
        ("dqn", "Pendulum-v1", {"gamma"}, {"num_action_bins": 3}, ""),
        (
            "dqn",
            "CartPole-v1",
            {"gamma", "batch_size", "loss"},
            {},
            "batch_size, loss would change the program",
        ),
        ("reinforce", "CartPole-v0", {"gamma"}, {}, "the loop of REINFORCE"),
        ("dqn", "LunarLander-v3", {"gamma"}, {}, "LunarLander-v3 is not written in"),
        ("dqn", lambda: None, {"gamma"}, {}, "the environment is not written in"),
        ("dqn", "CartPole-v1", {"gamma"}, {"jit_compile": False}, "jit_compile is"),
        (
            "dqn",
            dataclasses.replace(
                native.load("CartPole-v1").dynamics, max_episode_steps=None
            ),
            {"gamma"},
            {},
            "the environment has no time limit",
        ),
        (
            "dqn",
            dataclasses.replace(native.self_play.of_game(nim()), max_episode_steps=9),
            {"gamma"},
            {},
            "each run has opponents of its own",
        ),
    ],
)
def test_the_reason_why_runs_cannot_be_one_program(
    name, environment, searched, values, reason
):
    recipe = registry.find(name)(settings=values)
    why = one_program.obstacle(recipe, environment, searched)
    assert why.startswith(reason)
    assert bool(why) == bool(reason)
