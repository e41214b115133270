"""The agents that `docs/agents.md` writes run as those of the package do."""

import ast
import math
import pathlib
import re

import keras
import numpy as np
import pytest

from tests.pairs import some_slow
from tests.train import countdown_runs
from tfrl import agents, train
from tfrl.environments import tf_py_environment
from tfrl.loggers import base
from tfrl.networks import sequential
from tfrl.replay_buffers import tf_uniform_replay_buffer

PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs" / "agents.md"
DEFINITIONS = ast.Import | ast.ImportFrom | ast.ClassDef
# The numbers that a network of the agent gives for each action.
SHAPES = {
    "ExpectedSarsaAgent": [],
    "AdvantageLearningAgent": [],
    "CautiousAgent": [5],
}


@pytest.fixture(scope="module")
def documented():
    """The classes of the page, by name."""
    names = {"__name__": PAGE.stem}
    for block in re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL):
        module = ast.parse(block)
        module.body = [n for n in module.body if isinstance(n, DEFINITIONS)]
        exec(compile(module, str(PAGE), "exec"), names)
    return names


def test_every_agent_of_the_page_is_run(documented):
    found = {
        name
        for name, value in documented.items()
        if isinstance(value, type)
        and issubclass(value, agents.TFAgent)
        and value.__module__ == PAGE.stem
    }
    # Those of the page's assertions have other numbers, and the page runs the others.
    on_page = {"NoAdvantageAgent", "NeutralAgent", "CoolingSacAgent", "AwrAgent"}
    assert found - on_page == set(SHAPES)


@pytest.mark.slow
@pytest.mark.parametrize("name", some_slow(SHAPES, fast=["CautiousAgent"]))
def test_an_agent_of_the_page_is_trained_logged_and_saved(documented, name, tmp_path):
    environment = tf_py_environment.TFPyEnvironment(countdown_runs.countdown())
    specs = environment.time_step_spec(), environment.action_spec()
    shape = [int(specs[1].maximum) + 1, *SHAPES[name]]
    network = sequential.Sequential(
        [keras.layers.Dense(math.prod(shape)), keras.layers.Reshape(shape)],
        specs[0].observation,
        seed=0,
    )
    agent = documented[name](*specs, network, keras.optimizers.Adam(1e-2))
    agent.initialize()
    loop = train.OffPolicyLoop(
        environment,
        agent,
        tf_uniform_replay_buffer.TFUniformReplayBuffer(
            agent.collect_data_spec, batch_size=1, max_length=20, seed=0
        ),
        initial_collect_steps=8,
        sample_batch_size=4,
        seed=0,
    )
    memory = base.InMemoryLogger()
    settings = {"num_iterations": 2, "log_interval": 2, "loggers": [memory]}
    train.Run(loop, train.RunDirectory(tmp_path / name, {}), **settings).run()
    row = memory.data[-1]
    assert row["train_steps"] == 2
    assert np.isfinite(row["loss"])
    if isinstance(agent, agents.DqnAgent):
        assert np.isfinite([row["q_value"], row["td_error"]]).all()
