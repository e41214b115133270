"""Loops without an environment."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from tests.agents import every_agent
from tests.train import memory
from tfrl import agents, replay_buffers, train
from tfrl.specs import tensor_spec
from tfrl.trajectories import time_step as ts
from tfrl.trajectories import trajectory

OBSERVATION = tf.TensorSpec([2], tf.float32)
ACTION = tensor_spec.BoundedTensorSpec([1], tf.float32, -1.0, 1.0)
FRAMES = 60


ARGUMENTS = {
    # Of single frames.
    "BehavioralCloningAgent-continuous": {"num_outer_dims": 1},
    "CqlSacAgent": {},
    "IqlAgent": {},
}


def make_agent(name="IqlAgent", seed=3):
    return every_agent.KINDS[name].make(
        ts.time_step_spec(OBSERVATION), ACTION, (4,), seed, **ARGUMENTS[name]
    )


def filled(agent, kind=replay_buffers.TFUniformReplayBuffer, num_frames=FRAMES):
    """Episodes of five transitions and a boundary, whose actions are half of x[0]."""
    replay_buffer = kind(agent.collect_data_spec, 1, max_length=100, seed=1)
    rng = np.random.default_rng(0)
    types = np.array([0, 1, 1, 1, 1, 2], np.int32)
    for i in range(num_frames):
        x = rng.uniform(-1, 1, 2).astype(np.float32)
        frame = trajectory.Trajectory(
            step_type=types[i % 6],
            observation=x,
            action=x[:1] / 2,
            policy_info=(),
            next_step_type=types[(i + 1) % 6],
            reward=np.float32(x[0]),
            discount=np.float32(i % 6 != 4),
        )
        replay_buffer.add_batch(tf.nest.map_structure(lambda a: a[np.newaxis], frame))
    return replay_buffer


def make_loop(name="IqlAgent", jit_compile=False, seed=3, **kwargs):
    agent = make_agent(name, seed)
    arguments = {"train_steps_per_iteration": 2, "sample_batch_size": 8, **kwargs}
    return train.OfflineLoop(
        agent, filled(agent), seed=seed, jit_compile=jit_compile, **arguments
    )


def weights(loop):
    return [v.numpy() for v in loop.agent.variables()]


def ran(name, jit_compile):
    """Returns a loop after 20 updates, its counters, and its weights."""
    loop = make_loop(name, jit_compile)
    infos = [loop.run(1) for _ in range(10)]
    return loop, infos, weights(loop)


@pytest.fixture(
    scope="module",
    params=[
        "BehavioralCloningAgent-continuous",
        pytest.param("CqlSacAgent", marks=pytest.mark.slow),
        pytest.param("IqlAgent", marks=pytest.mark.slow),
    ],
)
def name(request):
    return request.param


@pytest.fixture(scope="module")
def plain(name):
    return ran(name, jit_compile=False)


@pytest.fixture(scope="module")
def compiled(name):
    return ran(name, jit_compile=True)


def test_it_counts_updates_and_no_environment_steps(plain):
    loop, infos, _ = plain
    info = infos[-1]
    assert (info.iteration, info.train_steps) == (10, 20)
    assert (info.environment_steps, info.episodes) == (0, 0)
    assert np.isfinite(info.loss)
    assert np.isnan(info.average_return)
    assert loop.replay_size() == FRAMES
    assert loop.trace_count() == 1


@pytest.mark.parametrize(
    ("name", "num_steps"),
    [
        ("BehavioralCloningAgent-continuous", None),
        pytest.param("IqlAgent", 2, marks=pytest.mark.slow),
    ],
    indirect=["name"],
)
def test_it_does_what_updates_by_hand_do(name, num_steps, plain):
    """Batches of the documented seeds, (loop's seed, number of the update)."""
    *_, trained = plain
    agent = make_agent(name)
    replay_buffer = filled(agent)
    for step in range(1, 21):
        batch, _ = replay_buffer.sample(8, num_steps, tf.constant([3, step], tf.int64))
        agent.train(batch)
    for one, other in zip(agent.variables(), trained, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)


@pytest.mark.slow
def test_a_compiled_loop_gives_the_results_of_a_plain_one(plain, compiled):
    (_, infos, trained), (loop, *others) = plain, compiled
    np.testing.assert_allclose(others[0], infos, rtol=1e-4)
    assert loop.trace_count() == 1
    for one, other in zip(others[1], trained, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)


@pytest.mark.slow
def test_a_restored_compiled_loop_goes_on_bit_for_bit(compiled, tmp_path):
    loop, *_ = compiled
    checkpoint = tf.train.Checkpoint(**loop.checkpoint_items())
    path = checkpoint.write(str(tmp_path / "loop"))
    expected = loop.run(5), weights(loop)
    checkpoint.read(path).assert_existing_objects_matched()
    np.testing.assert_array_equal(loop.run(5), expected[0])
    for one, other in zip(weights(loop), expected[1], strict=True):
        np.testing.assert_array_equal(one, other)


def test_many_iterations_add_no_trace_and_no_memory(compiled):
    loop, *_ = compiled
    loop.run(100)
    before = memory.resident_megabytes()
    loop.run(500)
    assert memory.resident_megabytes() - before < 4
    assert loop.trace_count() == 1


@pytest.mark.slow
def test_a_run_resumes_bit_for_bit(tmp_path):
    """Without the frames in the checkpoint; the log has the agent's numbers."""

    def go(directory, *lengths):
        for length in lengths:
            loop = make_loop("BehavioralCloningAgent-continuous")
            run = train.Run(
                loop,
                train.RunDirectory(directory, {}),
                num_iterations=length,
                log_interval=2,
                checkpoint_interval=2,
            )
            result = run.run()
            assert (result.iteration, result.finished) == (length, True)
        return loop

    whole, resumed = go(tmp_path / "a", 4), go(tmp_path / "b", 2, 4)
    for one, other in zip(weights(whole), weights(resumed), strict=True):
        np.testing.assert_array_equal(one, other)
    assert "replay_buffer" not in whole.checkpoint_items()
    rows = (tmp_path / "a" / "metrics.csv").read_text().splitlines()
    header, last = rows[0].split(","), rows[-1].split(",")
    row = dict(zip(header, last, strict=True))
    assert (row["train_steps"], row["environment_steps"]) == ("8", "0")
    assert row["average_return"] == ""
    assert (tmp_path / "a" / "learning_curve.png").exists()


@pytest.mark.slow
def test_prioritized_replay_moves_the_priorities():
    agent = make_agent()
    replay_buffer = filled(agent, replay_buffers.TFPrioritizedReplayBuffer)

    def probabilities():
        _, info = replay_buffer.sample(200, 2, 0)
        return np.unique(np.round(info.probabilities, 6))

    assert len(probabilities()) == 1
    loop = train.OfflineLoop(agent, replay_buffer, sample_batch_size=8, seed=0)
    loop.run(2)
    assert len(probabilities()) > 5
    assert "replay_buffer" in loop.checkpoint_items()


def test_behavioural_cloning_of_single_frames():
    """The recorded policy is linear, and so is the network."""
    agent = agents.BehavioralCloningAgent(
        ts.time_step_spec(OBSERVATION),
        ACTION,
        keras.layers.Dense(1),
        keras.optimizers.Adam(3e-2),
    )
    loop = train.OfflineLoop(agent, filled(agent), sample_batch_size=16, seed=0)
    loop.run(400)
    step = ts.restart(np.array([[0.8, 0.1], [-0.4, -0.9]], np.float32), batch_size=2)
    action = agent.policy.action(step).action
    np.testing.assert_allclose(action, [[0.4], [-0.2]], atol=0.02)


def test_what_cannot_be_trained_on_is_refused():
    agent = make_agent()
    with pytest.raises(ValueError, match="got 1 frame"):
        train.OfflineLoop(agent, filled(agent, num_frames=1))
    episodic = replay_buffers.EpisodicReplayBuffer(agent.collect_data_spec, 10)
    with pytest.raises(ValueError, match="draws from a seed"):
        train.OfflineLoop(agent, episodic)
    with pytest.raises(ValueError, match="sequence_length"):
        make_loop(sequence_length=3)
    with pytest.raises(TypeError, match="DqnAgent"):
        train.OfflineLoop(None, filled(agent))
