"""A user's loop that keeps no experience: it runs, resumes, compiles, sweeps."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from tfrl import train
from tfrl.agents import DqnAgent
from tfrl.environments import native
from tfrl.networks import QNetwork
from tfrl.train.loops import collecting_loop
from tfrl.train.runs import run_directory


class OnPolicyLoop(collecting_loop.CollectingLoop):
    """Trains on every two frames at once, and forgets them."""

    supports_sweep = True

    def __init__(self, environment, agent, *, seed=None, jit_compile=False):
        super().__init__(environment, agent, None, (), seed, jit_compile)

    def iterate(self, time_step, policy_state):
        return self._transform.apply(self._step_and_train, time_step, policy_state)

    def _step_and_train(self, *position):
        frames = []
        for _ in range(2):
            frame, *position = self._take_step(self._agent.collect_policy, *position)
            frames.append(frame)
        experience = tf.nest.map_structure(lambda *t: tf.stack(t, axis=1), *frames)
        return *position, self._agent.train(experience).loss


def make(seed=0, **kwargs):
    environment = native.load("CartPole-v1", 3, seed, max_episode_steps=30)
    specs = environment.observation_spec(), environment.action_spec()
    agent = DqnAgent(
        environment.time_step_spec(),
        environment.action_spec(),
        QNetwork(*specs, fc_layer_params=(), seed=seed),
        keras.optimizers.Adam(1e-2),
        gamma=0.9,
        seed=seed,
    )
    agent.initialize()
    return OnPolicyLoop(environment, agent, seed=seed, **kwargs)


def weights(made):
    return [v.numpy() for v in made.agent.variables()]


@pytest.fixture(scope="module")
def traced(tmp_path_factory):
    """A loop, and the checkpoint of its construction."""
    made = make()
    folder = tmp_path_factory.mktemp("traced")
    path = tf.train.Checkpoint(**made.checkpoint_items()).write(str(folder / "c"))
    return made, path


def as_built(traced):
    made, path = traced
    tf.train.Checkpoint(**made.checkpoint_items()).read(path).assert_consumed()
    made.environment.seed(0)
    return made


@pytest.fixture(scope="module")
def ten(traced):
    """What a loop says after ten iterations in one call, and its weights."""
    made = as_built(traced)
    return made.run(10), weights(made)


def test_iterations_do_not_depend_on_the_calls(ten, traced):
    info, expected = ten
    made = as_built(traced)
    made.run(4)
    made.run(6)
    assert (info.iteration, info.train_steps) == (10, 10)
    assert np.isfinite(info.loss)
    for a, b in zip(weights(made), expected, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.slow
def test_a_compiled_loop_does_the_same(ten):
    compiled = make(jit_compile=True)
    compiled.run(10)
    for a, b in zip(ten[1], weights(compiled), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6)
    # It reads its time steps from the environment, and ends with the last one.
    reached = compiled._take_position()[0]
    tf.nest.map_structure(
        np.testing.assert_array_equal, reached, compiled.environment.current_time_step()
    )


@pytest.mark.slow
def test_a_run_saves_and_resumes_without_a_replay_buffer(ten, traced, tmp_path):
    def run(made, iterations):
        directory = run_directory.RunDirectory(tmp_path / "run", {})
        return train.Run(
            made, directory, num_iterations=iterations, checkpoint_interval=4
        ).run()

    first, resumed = as_built(traced), make(seed=1)
    assert "replay_buffer" not in first.checkpoint_items()
    run(first, 4)
    assert run(resumed, 10).resumed_at == 4
    for a, b in zip(weights(resumed), ten[1], strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.slow  # `test_sweep.py` sweeps another loop.
def test_a_sweep_takes_any_loop_that_says_so():
    result = train.sweep(
        make, [0, 1, 2], num_iterations=6, eval_interval=3, num_threads=1
    )
    assert result.returns.shape == (3, 2)
    restored, alone = result.restore(2), make(2)
    alone.run(6)
    for a, b in zip(weights(restored), weights(alone), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6)


def test_a_loop_that_cannot_be_swept_is_refused(monkeypatch):
    monkeypatch.setattr(OnPolicyLoop, "supports_sweep", False)
    with pytest.raises(
        TypeError, match=r"of type OnPolicyLoop, expected .* whose supports_sweep is Tr"
    ):
        train.sweep(make, [0], num_iterations=1, eval_interval=1)
