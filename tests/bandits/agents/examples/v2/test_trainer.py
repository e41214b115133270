"""TF-Agents' trainer of bandits: every round is learned once, and runs go on."""

import logging

import numpy as np
import pytest
import tensorflow as tf

from tfrl.bandits import agents, environments, replay_buffers
from tfrl.bandits.agents.examples.v2 import trainer

ROUNDS = 2 * 3 * 4  # Of two loops of three steps of four members.


def _agent(bandit):
    return agents.LinearUCBAgent(bandit.time_step_spec(), bandit.action_spec())


def _train(folder, agent, bandit, loops=2, **kwargs):
    trainer.train(str(folder), agent, bandit, loops, 3, **kwargs)


def test_every_round_is_learned_once(tmp_path, caplog):
    caplog.set_level(logging.INFO)
    bandit = environments.load("LinearBandit-v0", 4, seed=0)
    agent, seen = _agent(bandit), []

    class Buffer(replay_buffers.BanditReplayBuffer):
        def gather_all(self):
            seen.append(super().gather_all())
            return seen[-1]

    def make_buffer(spec, batch_size, steps, stretches):
        assert (batch_size, steps, stretches) == (4, 3, 2)
        return Buffer(spec, batch_size, max_length=steps * stretches)

    _train(
        tmp_path,
        agent,
        bandit,
        1,
        get_replay_buffer_fn=make_buffer,
        async_steps_per_loop=2,
        save_policy=False,
    )
    (frames,) = seen
    context = tf.reshape(frames.observation, [-1, 15]).numpy()
    arm = tf.reshape(frames.action, [-1]).numpy()
    assert len(arm) == ROUNDS
    for i, matrix in enumerate(agent.cov_matrix):
        rows = context[arm == i]
        np.testing.assert_allclose(matrix, rows.T @ rows, rtol=1e-4, atol=1e-3)
    assert caplog.text.count("AverageReturn = ") == 2
    assert caplog.text.count("loss = ") == 2


@pytest.mark.slow
def test_a_run_goes_on_from_its_checkpoint(tmp_path):
    bandit = environments.load("LinearBandit-v0", 4, seed=0)
    _train(tmp_path, _agent(bandit), bandit)
    assert (tmp_path / "policy_12" / "saved_model.pb").exists()
    assert tf.train.latest_checkpoint(str(tmp_path)).endswith("-2")
    agent = _agent(bandit)
    _train(tmp_path, agent, bandit, resume_training_loops=True)  # Nothing is left.
    assert int(tf.reduce_sum(agent.num_samples)) == ROUNDS
    _train(tmp_path, agent, bandit, 3, resume_training_loops=True)
    assert int(tf.reduce_sum(agent.num_samples)) == ROUNDS + 12
    _train(tmp_path, agent, bandit, 1)
    assert int(tf.reduce_sum(agent.num_samples)) == ROUNDS + 24
    assert tf.train.latest_checkpoint(str(tmp_path)).endswith("-4")
    with pytest.raises(ValueError, match="root_dir: got a checkpoint after 48 rounds"):
        trainer.train(str(tmp_path), agent, bandit, 2, 5, resume_training_loops=True)
