"""The loop over a dataset: its updates, statistics, priorities, log and resumption."""

import csv

import keras
import numpy as np
import pytest
import tensorflow as tf

from tests.agents import every_agent
from tfrl import agents, loggers, networks, replay_buffers, train
from tfrl.trajectories import policy_step, trajectory
from tfrl.trajectories import time_step as ts
from tfrl.utils.reward_normalizer import RewardNormalizer
from tfrl.utils.tensor_normalizer import StreamingTensorNormalizer

OBSERVATION = tf.TensorSpec([2], tf.float32, "observation")
NUM_BATCHES, BATCH_SIZE = 8, 4


def make_agent(**kwargs):
    return agents.DqnAgent(
        ts.time_step_spec(OBSERVATION),
        every_agent.CHOICE,
        networks.QNetwork(
            OBSERVATION, every_agent.CHOICE, fc_layer_params=(3,), seed=1
        ),
        keras.optimizers.Adam(0.01),
        gamma=0.9,
        **kwargs,
    )


def make_batches(size=(NUM_BATCHES, BATCH_SIZE, 2)):
    rng = np.random.default_rng(0)
    middle = tf.fill(size, ts.StepType.MID)
    return trajectory.Trajectory(
        step_type=middle,
        observation=tf.constant(rng.normal(3.0, size=(*size, 2)), tf.float32),
        action=tf.constant(rng.integers(0, 3, size), tf.int32),
        policy_info=(),
        next_step_type=middle,
        reward=tf.constant(rng.normal(size=size), tf.float32),
        discount=tf.ones(size),
    )


BATCHES = make_batches()
INFOS = tf.range(NUM_BATCHES)


def pairs():
    return tf.data.Dataset.from_tensor_slices((BATCHES, INFOS))


class Steps:
    """Takes steps from elements `(experience, info, step)`; counts wrong ones."""

    def __init__(self, agent):
        self.num_wrong = tf.Variable(0)
        self._agent = agent

    def take(self, elements):
        for i, (_, _, step) in enumerate(elements):
            now = tf.cast(self._agent.train_step_counter, tf.int32) + i
            self.num_wrong.assign_add(tf.cast(step != now, tf.int32))
        return [element[:2] for element in elements]


def triples():
    return tf.data.Dataset.from_tensor_slices((BATCHES, INFOS, INFOS))


def weights(agent):
    return [v.numpy() for v in agent.variables()]


@pytest.fixture(
    scope="module",
    params=[None, pytest.param(3, marks=pytest.mark.slow)],
    ids=["plain", "compiled"],
)
def trained(request):
    agent = make_agent(observation_normalizer=StreamingTensorNormalizer(OBSERVATION))
    agent.initialize()
    steps = Steps(agent)
    loop = train.DatasetLoop(
        agent, triples, compiled_updates=request.param, prepare_fn=steps.take
    )
    can_draw = [loop.can_draw_for_log()]
    infos = [loop.run(2), loop.run(4)]
    assert steps.num_wrong == 0
    return loop, infos, [*can_draw, loop.can_draw_for_log()]


def test_the_elements_of_updates_are_prepared_just_before_them():
    agent = make_agent()
    agent.initialize()
    steps = Steps(agent)
    loop = train.DatasetLoop(agent, lambda: triples().skip(1), prepare_fn=steps.take)
    loop.run(3)
    assert steps.num_wrong == 3


def test_an_iteration_trains_on_the_next_elements_in_order(trained):
    loop, infos, _ = trained
    by_hand = make_agent(observation_normalizer=StreamingTensorNormalizer(OBSERVATION))
    by_hand.initialize()
    losses = []
    for i in range(6):
        frames = tf.nest.map_structure(lambda leaf, i=i: leaf[i], BATCHES)
        losses.append(float(by_hand.train(frames).loss))
        by_hand.update_normalizers(frames)
    for one, other in zip(weights(loop.agent), weights(by_hand), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)
    assert [info.loss for info in infos] == pytest.approx(
        [np.mean(losses[:2]), np.mean(losses[2:])], rel=1e-4
    )
    assert loop.trace_count() == 1


def test_it_counts_updates_and_no_environment_steps(trained):
    _, (*_, info), _ = trained
    assert (info.iteration, info.train_steps) == (6, 6)
    assert (info.environment_steps, info.episodes) == (0, 0)
    assert np.isnan(info.average_return)


class OtherProcesses(tf.Module):
    """Environments that have done another step at each look."""

    def __init__(self):
        super().__init__()
        self.steps = tf.Variable(0)

    def take(self):
        self.steps.assign_add(1)

    def counters(self):
        return {"environment_steps": int(self.steps), "average_return": 3.0}


def test_the_work_of_other_processes_is_counted_after_each_call_and_saved():
    agent = make_agent()
    agent.initialize()
    collected = OtherProcesses()
    loop = train.DatasetLoop(agent, pairs, collected=collected)
    assert loop.info().environment_steps == 0
    counts = [loop.run_call(1).environment_steps for _ in range(3)]
    assert counts == [1, 2, 3]
    assert (loop.info().average_return, loop.info().episodes) == (3.0, 0)
    assert loop.checkpoint_items()["collected"] is collected
    assert "collected" not in train.DatasetLoop(agent, pairs).checkpoint_items()


def test_frames_move_the_statistics(trained):
    loop, *_ = trained
    count, means, *_ = loop.agent.observation_normalizer.variables
    seen = BATCHES.observation.numpy()[:6].reshape(-1, 2)
    assert count == len(seen)
    np.testing.assert_allclose(means, seen.mean(0), rtol=1e-5)


def test_the_log_sees_the_last_batch(trained):
    loop, _, can_draw = trained
    assert can_draw == [False, True]
    np.testing.assert_array_equal(
        loop.draw_for_log().observation, BATCHES.observation[5]
    )
    assert loop.replay_size() is None


def test_the_statistics_may_belong_to_others():
    agent = make_agent(observation_normalizer=StreamingTensorNormalizer(OBSERVATION))
    train.DatasetLoop(agent, pairs, update_normalizers=False).run(2)
    assert agent.observation_normalizer.variables[0] == 0


def test_the_end_of_the_dataset_is_an_error():
    loop = train.DatasetLoop(make_agent(), pairs)
    with pytest.raises(tf.errors.OutOfRangeError):
        loop.run(NUM_BATCHES + 1)


@pytest.mark.slow
def test_compiled_updates_find_losses_that_are_not_finite():
    batches = BATCHES._replace(reward=BATCHES.reward * np.nan)
    loop = train.DatasetLoop(
        make_agent(),
        lambda: tf.data.Dataset.from_tensor_slices((batches, INFOS)),
        compiled_updates=1,
    )
    with pytest.raises(tf.errors.InvalidArgumentError, match="the weights are lost"):
        loop.run(1)


def test_what_xla_cannot_compile_runs_in_a_plain_graph():
    with pytest.warns(RuntimeWarning, match="batch the dataset with drop_remainder"):
        loop = train.DatasetLoop(
            make_agent(),
            lambda: (
                tf.data.Dataset.from_tensor_slices((BATCHES, BATCHES))
                .unbatch()
                .batch(2)
            ),
            compiled_updates=1,
        )
    assert loop.activity == "tracing the training loop"
    with pytest.raises(ValueError, match="compiled_updates: expected an integer of at"):
        train.DatasetLoop(make_agent(), pairs, compiled_updates=0)


def filled(agent, kind):
    replay_buffer = kind(agent.collect_data_spec, BATCH_SIZE, max_length=20, seed=1)
    frames = make_batches((10, BATCH_SIZE))
    for t in range(10):
        replay_buffer.add_batch(tf.nest.map_structure(lambda x, t=t: x[t], frames))
    return replay_buffer


@pytest.mark.slow
def test_prioritized_replay_moves_the_priorities_as_an_off_policy_loop_does():
    agent = make_agent()
    replay_buffer = filled(agent, replay_buffers.TFPrioritizedReplayBuffer)
    seen, train_once = [], agent.train

    def spy(experience, weights):
        seen.append(weights.shape)
        return train_once(experience, weights)

    agent.train = spy
    loop = train.DatasetLoop(
        agent, lambda: replay_buffer.as_dataset(3, 2), replay_buffer
    )
    loop.run(3)
    assert [shape.as_list() for shape in seen] == [[3]]
    _, info = replay_buffer.sample(200, 2, 0)
    assert len(np.unique(np.round(info.probabilities, 6))) > 3
    assert loop.replay_size() == 10 * BATCH_SIZE
    assert loop.checkpoint_items()["replay_buffer"] is replay_buffer


def make_run(directory, length, **kwargs):
    agent = make_agent()
    agent.initialize()
    return train.Run(
        train.DatasetLoop(agent, lambda: pairs().repeat()),
        train.RunDirectory(directory, {"num_iterations": length}),
        num_iterations=length,
        log_interval=2,
        checkpoint_interval=2,
        **kwargs,
    )


@pytest.mark.slow
def test_a_run_writes_its_outputs_and_resumes(tmp_path):
    memory = loggers.InMemoryLogger()
    assert make_run(tmp_path, 4, loggers=[memory]).run().finished
    assert memory.data[-1]["q_value"] != 0
    result = make_run(tmp_path, 8).run()
    assert (result.resumed_at, result.iteration, result.finished) == (4, 8, True)
    with (tmp_path / "metrics.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [row["train_steps"] for row in rows] == ["0", "2", "4", "6", "8"]
    assert rows[-1]["loss"]
    assert (tmp_path / "final_policy").exists()


def test_a_buffer_must_be_one():
    with pytest.raises(TypeError, match="replay_buffer: got 'none'"):
        train.DatasetLoop(make_agent(), pairs, "none")


def test_a_reward_normalizer_that_follows_environments_is_refused():
    agent = make_agent(reward_normalizer=RewardNormalizer(2))
    with pytest.raises(ValueError, match="got one of batch_size=2, which follows"):
        train.DatasetLoop(agent, pairs)
    agent = make_agent(reward_normalizer=RewardNormalizer(None, gamma=0))
    train.DatasetLoop(agent, pairs).run(1)
    normalized = agent.reward_normalizer.normalize(BATCHES.reward[0])
    assert np.std(normalized) == pytest.approx(1, abs=1e-3)


def test_statistics_need_frames():
    agent = make_agent(observation_normalizer=StreamingTensorNormalizer(OBSERVATION))
    step = ts.TimeStep(*[BATCHES[i][:, :, 0] for i in (0, 5, 6, 1)])
    transition = trajectory.Transition(
        step, policy_step.PolicyStep(BATCHES.action[:, :, 0], (), ()), step
    )
    loop = train.DatasetLoop(
        agent, lambda: tf.data.Dataset.from_tensor_slices((transition, INFOS))
    )
    with pytest.raises(TypeError, match="experience: got a Transition, expected a"):
        loop.run(1)
