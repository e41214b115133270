"""Runs whose checkpoints hold a replay buffer's words as int32 go on.

The words were int32 up to commit 164c8db, which wrote the data of these tests:

    cd CHECKOUT_OF_164c8db
    PYTHONPATH=. python THIS_FILE FOLDER_OF_THIS_FILE/int32_words

The checkpoints also hold the position as a pickle, which a run no longer reads. The
test of what follows reads it itself, because these files are the repository's own.
"""

import pathlib
import pickle
import shutil
import sys

import keras
import numpy as np
import pytest
import tensorflow as tf

from tfrl.agents.dqn import dqn_agent
from tfrl.environments import native
from tfrl.networks import q_network
from tfrl.replay_buffers import tf_uniform_replay_buffer
from tfrl.train.loops import off_policy_loop, position
from tfrl.train.runs import run, run_directory

pytestmark = pytest.mark.filterwarnings("error:CHECKPOINT OF OTHER OBJECTS")

DATA = pathlib.Path(__file__).parent / "int32_words"
# Iterations up to the checkpoint, and to the end.
MIDDLE, END = 15, 40


def make_run(path, num_iterations, jit_compile):
    environment = native.load("CartPole-v1", 2, seed=5)
    specs = environment.observation_spec(), environment.action_spec()
    agent = dqn_agent.DqnAgent(
        environment.time_step_spec(),
        environment.action_spec(),
        q_network=q_network.QNetwork(*specs, fc_layer_params=(4,), seed=3),
        optimizer=keras.optimizers.Adam(1e-2),
        epsilon_greedy=0.3,
        target_update_period=7,
        seed=3,
    )
    agent.initialize()
    buffer = tf_uniform_replay_buffer.TFUniformReplayBuffer(
        agent.collect_data_spec, batch_size=2, max_length=20, seed=7
    )
    loop = off_policy_loop.OffPolicyLoop(
        environment,
        agent,
        buffer,
        initial_collect_steps=8,
        sample_batch_size=8,
        seed=4,
        jit_compile=jit_compile,
    )
    directory = run_directory.RunDirectory(path, {})
    return run.Run(loop, directory, num_iterations=num_iterations), loop, buffer


def words(buffer):
    """The variable of words, whatever its dtype."""
    return buffer._table.variables()[-1].numpy().view(np.uint32)


def write(folder):
    """Writes a run up to MIDDLE, and where it is at END."""
    path = folder / "uniform"
    shutil.rmtree(path, ignore_errors=True)
    driven, _, buffer = make_run(path, MIDDLE, False)
    driven.run()
    ends = {"uniform_middle_words": words(buffer)}
    for jit_compile in (False, True):
        name = f"uniform_{'compiled' if jit_compile else 'plain'}"
        shutil.copytree(path, folder / "copy")
        driven, loop, buffer = make_run(folder / "copy", END, jit_compile)
        driven.run()
        shutil.rmtree(folder / "copy")
        ends[f"{name}_words"] = words(buffer)
        for i, weights in enumerate(loop.agent.policy.variables()):
            ends[f"{name}_weights_{i}"] = weights.numpy()
    for output in path.iterdir():
        if output.name not in ("checkpoints", "config.json"):
            output.unlink() if output.is_file() else shutil.rmtree(output)
    np.savez_compressed(folder / "ends.npz", **ends)


def read_pickle(self, string_value):
    """Restores a position as `Position.deserialize` of 164c8db did."""
    where, environment_state = pickle.loads(string_value)
    self._environment.set_state(environment_state)
    self.set(*tf.nest.map_structure(tf.convert_to_tensor, where))


@pytest.mark.slow
@pytest.mark.parametrize(
    "jit_compile",
    [False, pytest.param(True, marks=pytest.mark.slow)],
    ids=["plain", "compiled"],
)
def test_a_run_goes_on_as_it_would_have(jit_compile, tmp_path, monkeypatch):
    monkeypatch.setattr(position.Position, "deserialize", read_pickle)
    ends = np.load(DATA / "ends.npz")
    name = f"uniform_{'compiled' if jit_compile else 'plain'}"
    shutil.copytree(DATA / "uniform", tmp_path / "run")
    driven, loop, buffer = make_run(tmp_path / "run", END, jit_compile)
    assert loop.iteration == MIDDLE
    assert buffer._table.variables()[-1].dtype == tf.uint32
    np.testing.assert_array_equal(words(buffer), ends["uniform_middle_words"])
    assert driven.run().resumed_at == MIDDLE
    # Another processor may round otherwise: the last bits of floats are not compared.
    frames = words(buffer).view(np.float32), ends[f"{name}_words"].view(np.float32)
    np.testing.assert_allclose(*frames, rtol=1e-4, atol=1e-6)
    weights = loop.agent.policy.variables()
    for i, value in enumerate(weights):
        np.testing.assert_allclose(value, ends[f"{name}_weights_{i}"], rtol=1e-4)


@pytest.mark.slow  # `test_off_policy_loop.py` restores a pickled position.
def test_without_its_pickled_position_a_run_goes_on_with_a_new_episode(tmp_path):
    ends = np.load(DATA / "ends.npz")
    shutil.copytree(DATA / "uniform", tmp_path / "run")
    with pytest.warns(RuntimeWarning, match=r"it is a pickle.* with a new episode"):
        driven, loop, buffer = make_run(tmp_path / "run", END, False)
    assert not loop._position.is_set
    np.testing.assert_array_equal(words(buffer), ends["uniform_middle_words"])
    result = driven.run()
    assert (result.resumed_at, result.iteration) == (MIDDLE, END)


if __name__ == "__main__":
    write(pathlib.Path(sys.argv[1]))
