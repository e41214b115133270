"""Agents train in environments in JAX as in others: in sweeps, and on other devices."""

import json
import pathlib

import numpy as np
import pytest

from tfrl import train
from tfrl.environments.native.jax_environments import libraries

pytest.importorskip("jax")
from tests.environments.native.jax_environments import small_loops

pytestmark = [pytest.mark.slow, pytest.mark.timeout(3600)]
every = pytest.mark.parametrize("name", small_loops.EVERY)


def require(name):
    """Skips a test of a library that is not installed."""
    if name != small_loops.OWN:
        library, _ = libraries.find(name)
        pytest.importorskip(library.module)


@every
def test_the_runs_of_a_sweep_train_as_alone(name):
    require(name)

    def make_loop(seed):
        return small_loops.make_loop(name, seed)

    if make_loop(0).environment.dynamics.max_episode_steps is None:  # As pgx's games.
        with pytest.raises(ValueError, match="the environment has no time limit"):
            train.sweep(make_loop, [0, 1], num_iterations=3, eval_interval=3)
        return
    result = train.sweep(
        make_loop, [0, 1], num_iterations=3, eval_interval=3, num_eval_episodes=2
    )
    for seed in (0, 1):
        swept, alone = result.restore(seed), make_loop(seed)
        alone.run(3)
        assert swept.info()[:4] == alone.info()[:4]
        for one, other in zip(
            swept.agent.variables(), alone.agent.variables(), strict=True
        ):
            np.testing.assert_allclose(one, other, atol=1e-5)


@every
def test_an_agent_trains_as_on_one_device(forks, name):
    """As on a GPU, where no variable of int32 can be."""
    require(name)
    script = pathlib.Path(__file__).parent / "scripts" / "like_a_gpu.py"
    code, output, errors = forks.run(str(script), name)
    assert code == 0, errors[-3000:]
    found = json.loads(output.splitlines()[-1])
    for mode, allowed in (("plain", 0), ("compiled", 1e-4)):
        assert found[mode]["devices"] == ["CPU:1"]
        assert found[mode]["int32"] == []
        assert found[mode]["difference"] <= allowed
        assert found[mode]["same_counts"]
