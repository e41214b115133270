import ast
import importlib.util
import pathlib

import pytest

from benchmarks.workers import example_agents


@pytest.mark.parametrize(
    "algorithm", ["dqn", "ppo", "pqn", "reinforce", "sac", "td3", "impala"]
)
def test_an_examples_module_makes_its_agent(algorithm):
    # The import of a script would define its flags.
    spec = importlib.util.find_spec(example_agents.module_of(algorithm))
    module = ast.parse(pathlib.Path(spec.origin).read_text())
    functions = [n.name for n in module.body if isinstance(n, ast.FunctionDef)]
    assert "make_agent" in functions
