"""What triggers save and log."""

import logging
import types

import keras
import numpy as np
import pytest
import tensorflow as tf

from tests import summaries_read
from tests.agents import every_agent
from tfrl.agents.dqn import dqn_agent
from tfrl.metrics import py_metrics
from tfrl.networks import q_network
from tfrl.policies import greedy_policy, policy_loader, py_tf_eager_policy
from tfrl.train import triggers
from tfrl.train.utils import train_utils
from tfrl.trajectories import time_step as ts
from tfrl.trajectories import trajectory

OBSERVATION = tf.TensorSpec([3], tf.float32, "observation")
OBSERVATIONS = np.random.default_rng(0).normal(size=(16, 3)).astype(np.float32)


@pytest.fixture(scope="module")
def agent():
    return dqn_agent.DqnAgent(
        ts.time_step_spec(OBSERVATION),
        every_agent.CHOICE,
        q_network.QNetwork(OBSERVATION, every_agent.CHOICE, fc_layer_params=(), seed=1),
        keras.optimizers.SGD(0.1),
    )


def actions(policy):
    steps = [ts.restart(observation) for observation in OBSERVATIONS]
    return [int(policy.action(step).action) for step in steps]


@pytest.fixture(scope="module")
def saved(agent, tmp_path_factory):
    """Policies that were saved at step 0, and weights of step 7 with other actions."""
    folder = tmp_path_factory.mktemp("policies")
    train_step = agent.train_step_counter
    counter = py_metrics.EnvironmentSteps()
    trigger = triggers.PolicySavedModelTrigger(
        folder,
        agent,
        train_step,
        interval=5,
        metadata_metrics={triggers.ENV_STEP_METADATA_KEY: counter},
        extra_concrete_functions=[
            ("double", tf.function(lambda x: 2 * x, [tf.TensorSpec([], tf.float32)]))
        ],
    )
    live = py_tf_eager_policy.PyTFEagerPolicy(agent.policy)
    before = actions(live)
    weights = agent.policy.variables()
    for variable in weights:
        variable.assign(-variable)
    counter(trajectory.mid((), (), (), np.float32(0), np.float32(1)))
    train_step.assign(7)
    trigger(4)
    trigger(7)
    return types.SimpleNamespace(folder=folder, before=before, after=actions(live))


@pytest.mark.slow
def test_the_directories_are_those_of_tf_agents(saved):
    assert {path.name for path in saved.folder.iterdir()} == {
        "checkpoints",
        "collect_policy",
        "greedy_policy",
        "policy",
    }
    checkpoints = [path.name for path in (saved.folder / "checkpoints").iterdir()]
    assert checkpoints == ["policy_checkpoint_0000000007"]


def test_another_process_can_wait_for_a_policy_and_then_update_it(saved):
    assert saved.before != saved.after
    policy = train_utils.wait_for_policy(
        saved.folder / "greedy_policy",
        num_retries=1,
        load_specs_from_pbtxt=True,
    )
    assert actions(policy) == saved.before
    assert policy.get_train_step() == 0
    policy.update_from_checkpoint(
        str(saved.folder / "checkpoints/policy_checkpoint_0000000007")
    )
    assert actions(policy) == saved.after
    assert policy.get_train_step() == 7
    assert policy.get_metadata() == {"env_step": 1}


def test_further_functions_are_saved(saved):
    loaded = tf.saved_model.load(str(saved.folder / "policy"))
    assert float(loaded.double(tf.constant(4.0))) == 8.0


@pytest.mark.slow
def test_a_second_trigger_keeps_whole_policies_and_replaces_damaged_ones(saved, agent):
    damaged = saved.folder / "collect_policy" / "saved_model.pb"
    whole = saved.folder / "greedy_policy" / "saved_model.pb"
    graph, time = damaged.read_bytes(), whole.stat().st_mtime_ns
    damaged.write_bytes(b"")
    triggers.PolicySavedModelTrigger(
        saved.folder, agent, agent.train_step_counter, interval=5
    )
    assert whole.stat().st_mtime_ns == time
    assert len(damaged.read_bytes()) > len(graph) / 2
    policy_loader.load(str(saved.folder / "collect_policy"))


def test_policies_that_are_not_wanted_are_not_saved(agent, tmp_path):
    trigger = triggers.PolicySavedModelTrigger(
        tmp_path,
        agent,
        agent.train_step_counter,
        interval=1,
        async_saving=True,
        save_greedy_policy=False,
        save_collect_policy=False,
    )
    assert isinstance(agent.policy, greedy_policy.GreedyPolicy)
    trigger(100)
    trigger._saver.close()  # Waits for the thread.
    assert sorted(path.name for path in tmp_path.iterdir()) == ["checkpoints", "policy"]


def test_metadata_cannot_be_saved_by_a_thread(agent, tmp_path):
    with pytest.raises(NotImplementedError, match="metadata_metrics: got some"):
        triggers.PolicySavedModelTrigger(
            tmp_path,
            agent,
            agent.train_step_counter,
            interval=1,
            async_saving=True,
            metadata_metrics={"steps": py_metrics.EnvironmentSteps()},
        )


def test_the_speed_is_logged_and_summarized(tmp_path, monkeypatch, caplog):
    now = [0.0]
    monkeypatch.setattr(
        triggers.step_per_second_tracker.time, "perf_counter", lambda: now[0]
    )
    train_step = tf.Variable(0, dtype=tf.int64)
    trigger = triggers.StepPerSecondLogTrigger(train_step, interval=10)
    writer = tf.summary.create_file_writer(str(tmp_path))
    with writer.as_default(), tf.summary.record_if(False), caplog.at_level("INFO"):
        for step, seconds in ((5, 1.0), (20, 4.0), (30, 2.0)):
            train_step.assign(step)
            now[0] += seconds
            trigger(step)
    writer.flush()
    assert summaries_read.scalars(tmp_path) == {
        "RunTime/train_steps_per_sec": [(20, 4.0), (30, 5.0)]
    }
    assert "Step: 20, 4.000 steps/sec" in caplog.text


def test_the_replay_server_is_asked_for_a_checkpoint(caplog):
    client = types.SimpleNamespace(checkpoint=lambda: "/replay/1")
    trigger = triggers.ReverbCheckpointTrigger(
        tf.Variable(0, dtype=tf.int64), interval=2, reverb_client=client
    )
    with caplog.at_level(logging.INFO):
        trigger(1)
        assert not caplog.text
        trigger(2)
    assert "Replay checkpoint: /replay/1" in caplog.text


def test_the_speed_of_a_resumed_run_leaves_out_the_steps_before(tmp_path, caplog):
    train_step = tf.Variable(0, dtype=tf.int64)
    trigger = triggers.StepPerSecondLogTrigger(train_step, interval=10)
    train_step.assign(10**12)
    trigger.set_start(10**12)
    train_step.assign_add(10)
    with caplog.at_level(logging.INFO):
        trigger(int(train_step))
    speed = caplog.messages[-1].removesuffix(" steps/sec").split()[-1]
    assert float(speed) < 1e8
