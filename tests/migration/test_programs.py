"""Small programs in TF-Agents' names run after the commands of the page.

`programs.py` writes them; the fast ones have each part once at least.
"""

import itertools
import re
import shutil

import pytest

from tests.migration import programs

pytestmark = pytest.mark.skipif(shutil.which("sed") is None, reason="needs sed")

# Together these have every environment, network, collector and kind of loss.
FAST = [
    (programs.of_q_agent, {"network": "own", "loss": "keras", "optimizer": "v1"}),
    (programs.of_actor_critic, {"loss": "v1", "environment": "discretized"}),
]
Q = programs.of_q_agent
ACTOR_CRITIC = programs.of_actor_critic
SLOW = [
    *((Q, {"environment": name, "collector": "loop"}) for name in programs.DISCRETE),
    *((Q, {"network": name, "optimizer": "v1"}) for name in programs.Q_NETWORKS),
    *(
        (Q, {"agent": agent, "loss": loss})
        for agent, loss in itertools.product(("dqn", "ddqn", "c51"), programs.LOSSES)
    ),
    *((Q, {"network": "recurrent", "loss": loss}) for loss in programs.LOSSES),
    *(
        (Q, {"collector": collector, "environment": environment})
        for collector, environment in itertools.product(
            programs.COLLECTORS, programs.DISCRETE
        )
    ),
    *((Q, {"optimizer": name, "agent": "ddqn"}) for name in programs.OPTIMIZERS),
    *(
        (ACTOR_CRITIC, {"agent": agent, "loss": loss, "optimizer": optimizer})
        for agent, loss, optimizer in itertools.product(
            programs.ACTOR_CRITICS, programs.LOSSES, ("keras", "v1")
        )
    ),
    *(
        (ACTOR_CRITIC, {"agent": agent, "collector": collector})
        for agent, collector in itertools.product(
            programs.ACTOR_CRITICS, programs.COLLECTORS
        )
    ),
]


def named(cases, **kwargs):
    return [
        pytest.param(
            write, parts, id="-".join([write.__name__, *parts.values()]), **kwargs
        )
        for write, parts in cases
    ]


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize(
    ("write", "parts"), named(FAST) + named(SLOW, marks=pytest.mark.slow)
)
def test_a_program_runs_after_the_commands_of_the_page(write, parts):
    source = programs.renamed(write(**parts))
    assert "tf_agents" not in source
    assert not re.search(r"\bimport gym$", source, re.MULTILINE)
    exec(compile(source, "program.py", "exec"), {"__name__": "__main__"})


def test_the_commands_rename_whole_names_alone():
    source = """
import gym
import gym.spaces
from gym.envs.registration import register
import reverb
from tf_agents.specs import array_spec
my_tf_agents, gym_like = gym.spaces, 3
"""
    assert (
        programs.renamed(source)
        == """
import gymnasium as gym
import gymnasium.spaces, gymnasium as gym
from gymnasium.envs.registration import register
from tfrl import replay_service as reverb
from tfrl.specs import array_spec
my_tf_agents, gym_like = gym.spaces, 3
"""
    )
