"""The listing of docs/jax_environments.md runs, with fewer steps."""

import pathlib
import re

import pytest

pytest.importorskip("jax")
PAGE = pathlib.Path(__file__).parents[4] / "docs" / "jax_environments.md"
SMALL = (
    "seed=0, num_envs=2, collect_steps_per_iteration=64, minibatch_size=64, "
    "jit_compile=False"
)


def test_the_environment_of_ones_own_trains_and_ends(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    [code] = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert code.count("50_000") == code.count("seed=0") == 1
    names = {"__name__": "page"}
    exec(code.replace("50_000", "256").replace("seed=0", SMALL), names)
    # Of 50 steps of -0.1 at most, and 1 at the end.
    assert -5.01 < names["ppo"].evaluate(4).mean < 0.8
