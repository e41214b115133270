"""A learner's train steps, checkpoints, triggers and summaries.

One agent and one batch serve most tests; a fixture puts its weights back.
"""

import types
from typing import NamedTuple

import keras
import numpy as np
import pytest
import tensorflow as tf

from tests import summaries_read
from tests.agents import every_agent
from tfrl.agents.dqn import dqn_agent
from tfrl.environments import native
from tfrl.networks import q_network
from tfrl.replay_buffers import tf_uniform_replay_buffer
from tfrl.train import ActorLoop, learner
from tfrl.trajectories import time_step as ts
from tfrl.trajectories import trajectory
from tfrl.utils.tensor_normalizer import StreamingTensorNormalizer

OBSERVATION = tf.TensorSpec([2], tf.float32, "observation")
NUM_BATCHES, BATCH_SIZE = 7, 4


class Sample(NamedTuple):
    """What reverb's datasets give."""

    info: tf.Tensor
    data: trajectory.Trajectory


def make_agent(observation=OBSERVATION, action=every_agent.CHOICE, **kwargs):
    return dqn_agent.DqnAgent(
        ts.time_step_spec(observation),
        action,
        q_network.QNetwork(observation, action, fc_layer_params=(3,), seed=1),
        keras.optimizers.Adam(0.1),
        gamma=0.9,
        target_update_tau=0.3,
        **kwargs,
    )


def make_batches():
    rng = np.random.default_rng(0)
    outer = NUM_BATCHES, BATCH_SIZE, 2
    middle = tf.fill(outer, ts.StepType.MID)
    return trajectory.Trajectory(
        step_type=middle,
        observation=tf.constant(rng.normal(size=(*outer, 2)), tf.float32),
        action=tf.constant(rng.integers(0, 3, outer), tf.int32),
        policy_info=(),
        next_step_type=middle,
        reward=tf.constant(rng.normal(size=outer), tf.float32),
        discount=tf.ones(outer),
    )


BATCHES = make_batches()
# The sample info of batch `i` is `i`.
INFOS = tf.range(NUM_BATCHES)


def batch(i):
    return tf.nest.map_structure(lambda leaf: leaf[i], BATCHES)


def pairs():
    return tf.data.Dataset.from_tensor_slices((BATCHES, INFOS))


@pytest.fixture(scope="module")
def shared_agent():
    made = make_agent()
    return made, [v.numpy() for v in made.variables()]


@pytest.fixture
def agent(shared_agent):
    made, initial = shared_agent
    for variable, value in zip(made.variables(), initial, strict=True):
        variable.assign(value)
    return made


def values(agent):
    return [v.numpy() for v in agent.variables()]


def assert_equal(some, others):
    for a, b in zip(some, others, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.fixture(scope="module")
def by_hand(shared_agent):
    """The variables and the loss after each train step of a loop by hand."""
    made = make_agent()
    made.initialize()
    train = tf.function(made.train, autograph=False)
    after = []
    for i in range(NUM_BATCHES):
        loss = float(train(batch(i)).loss)
        after.append((values(made), loss))
    return after


@pytest.fixture(scope="module")
def trained(shared_agent, tmp_path_factory):
    """A learner after runs of 3, 1 and 2 steps, and all that was seen of them."""
    agent, initial = shared_agent
    for variable, value in zip(agent.variables(), initial, strict=True):
        variable.assign(value)
    root = tmp_path_factory.mktemp("run")
    triggered, traces, train = [], [], agent.train
    seen = tf.Variable(tf.zeros([NUM_BATCHES], tf.int32))

    def counting(experience):
        traces.append(experience)
        return train(experience)

    def after_train_step(experience_and_info, loss_info):
        experience, info = experience_and_info
        del experience, loss_info
        seen.scatter_nd_add([[info]], [1])

    agent.train = counting
    made = learner.Learner(
        root,
        agent.train_step_counter,
        agent,
        pairs,
        after_train_strategy_step_fn=after_train_step,
        triggers=[triggered.append],
        checkpoint_interval=2,
        max_checkpoints_to_keep=2,
        summary_interval=2,
    )
    losses = [made.run(3), made.run(), made.run(iterations=2)]
    del agent.train
    return types.SimpleNamespace(
        root=root,
        learner=made,
        train_step=made.train_step_numpy,
        losses=losses,
        triggered=triggered,
        traces=traces,
        seen=seen.numpy().tolist(),
        values=values(agent),
    )


def test_a_run_does_its_train_steps_on_one_element_each(trained, by_hand):
    assert_equal(trained.values, by_hand[5][0])
    assert trained.train_step == 6
    assert trained.seen == [1] * 6 + [0]


def test_a_run_returns_the_loss_info_of_its_last_step(trained, by_hand):
    losses = [float(info.loss) for info in trained.losses]
    assert losses == [by_hand[i][1] for i in (2, 3, 5)]
    assert trained.losses[0].extra.td_loss.shape == [BATCH_SIZE]


def test_runs_of_any_length_share_one_trace(trained):
    assert len(trained.traces) == 1


def test_triggers_are_called_with_the_step_after_each_run(trained):
    assert trained.triggered == [3, 4, 6]
    assert all(isinstance(step, np.int64) for step in trained.triggered)


def test_checkpoints_are_where_tf_agents_puts_them(trained):
    folder = trained.root / "train" / "checkpoints"
    # At 3, and then at the first run that ends 2 steps later.
    assert {path.stem for path in folder.glob("*.index")} == {"ckpt-3", "ckpt-6"}


def test_summaries_are_of_every_second_step(trained):
    trained.learner.train_summary_writer.flush()
    found = summaries_read.scalars(trained.root / "train")
    assert [step for step, _ in found["Losses/total_loss"]] == [0, 2, 4]


def test_a_new_learner_restores_the_last_checkpoint_bit_for_bit(trained):
    other = make_agent()
    starts = []
    trigger = types.SimpleNamespace(set_start=starts.append)
    made = learner.Learner(
        trained.root, other.train_step_counter, other, triggers=[trigger]
    )
    assert_equal(values(other), trained.values)
    assert starts == [6]
    assert made.train_step_numpy == 6


def make_learner(agent, tmp_path, dataset_fn=pairs, **kwargs):
    return learner.Learner(
        tmp_path,
        agent.train_step_counter,
        agent,
        dataset_fn,
        summary_interval=None,
        checkpoint_interval=0,
        **kwargs,
    )


@pytest.mark.parametrize(
    ("dataset_fn", "kwargs"),
    [
        (
            lambda: tf.data.Dataset.from_tensor_slices(BATCHES),
            {"direct_sampling": True},
        ),
        (
            lambda: tf.data.Dataset.from_tensor_slices(Sample(INFOS, BATCHES)),
            {"use_reverb_v2": True},
        ),
        (
            lambda: tf.data.Dataset.from_tensor_slices(
                ({"experience": BATCHES}, INFOS)
            ),
            {"use_kwargs_in_agent_train": True},
        ),
    ],
    ids=["direct", "reverb v2", "kwargs"],
)
def test_elements_may_have_other_forms(agent, tmp_path, by_hand, dataset_fn, kwargs):
    made = make_learner(agent, tmp_path, dataset_fn, **kwargs)
    made.run(2)
    assert_equal(values(agent), by_hand[1][0])
    assert not (tmp_path / "train").exists() or not list(tmp_path.glob("**/*.index"))


def test_an_iterator_of_ones_own_is_used(agent, tmp_path, by_hand):
    made = make_learner(agent, tmp_path, None)
    assert float(made.run(3, iter(pairs())).loss) == by_hand[2][1]
    with pytest.raises(ValueError, match="iterator: got None in a Learner without"):
        made.run()


def test_a_buffer_in_variables_is_sampled_in_the_graph(agent, tmp_path):
    replay_buffer = tf_uniform_replay_buffer.TFUniformReplayBuffer(
        agent.collect_data_spec, batch_size=BATCH_SIZE, max_length=4, seed=0
    )
    for i in range(2):
        frames = tf.nest.map_structure(lambda leaf, t=i: leaf[:, t], batch(0))
        replay_buffer.add_batch(frames)
    made = make_learner(
        agent,
        tmp_path,
        lambda: replay_buffer.as_dataset(sample_batch_size=3, num_steps=2),
    )
    assert np.isfinite(made.run(5).loss)
    assert made.train_step_numpy == 5


def test_the_loss_changes_nothing(agent, tmp_path, by_hand):
    made = make_learner(agent, tmp_path)
    before = values(agent)
    given = made.loss((batch(0), INFOS[0]))
    drawn = made.loss()
    assert_equal(values(agent), before)
    for info in (given, drawn):
        np.testing.assert_allclose(info.loss, by_hand[0][1], rtol=1e-6)


@pytest.mark.slow
def test_compiled_losses_give_the_same_weights(tmp_path, by_hand):
    compiled = make_agent()
    make_learner(compiled, tmp_path, jit_compile=True).run(5)
    assert compiled.jit_compile_losses
    for a, b in zip(values(compiled), by_hand[4][0], strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6)


def test_the_end_of_the_dataset_is_an_error(agent, tmp_path):
    with pytest.raises(tf.errors.OutOfRangeError):
        make_learner(agent, tmp_path).run(NUM_BATCHES + 1)


def test_a_run_trains_at_least_once(trained):
    with pytest.raises(ValueError, match=r"iterations: .* got 0"):
        trained.learner.run(0)


def test_a_loss_that_is_not_finite_changes_nothing(agent, tmp_path):
    bad = BATCHES._replace(reward=BATCHES.reward * np.nan)
    made = make_learner(
        agent, tmp_path, lambda: tf.data.Dataset.from_tensor_slices((bad, INFOS))
    )
    before = values(agent)
    with pytest.raises(tf.errors.InvalidArgumentError, match="loss is not finite"):
        made.run(2)
    assert_equal(values(agent), before)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("is_on", "use_kwargs"),
    [
        (True, True),
        (False, False),
        pytest.param(True, False, marks=pytest.mark.slow),
        pytest.param(False, True, marks=pytest.mark.slow),
    ],
)
def test_experience_moves_the_statistics_of_normalizers(tmp_path, is_on, use_kwargs):
    agent = make_agent(observation_normalizer=StreamingTensorNormalizer(OBSERVATION))
    made = make_learner(
        agent,
        tmp_path,
        lambda: pairs().map(lambda x, i: ({"experience": x} if use_kwargs else x, i)),
        use_kwargs_in_agent_train=use_kwargs,
        update_normalizers=is_on,
    )
    made.run(3)
    made.loss()
    count, means, *_ = agent.observation_normalizer.variables
    seen = BATCHES.observation.numpy()[:3].reshape(-1, 2) * is_on
    assert count == len(seen) * is_on
    np.testing.assert_allclose(means, seen.mean(0), rtol=1e-4, atol=1e-6)


@pytest.mark.slow
def test_what_a_loop_collects_moves_the_statistics_in_the_learner(tmp_path):
    """A replayed frame counts each time."""
    environment = native.load("CartPole-v1", batch_size=2, seed=1)
    observation = environment.observation_spec()
    agent = make_agent(
        observation,
        environment.action_spec(),
        observation_normalizer=StreamingTensorNormalizer(observation),
    )
    replay_buffer = tf_uniform_replay_buffer.TFUniformReplayBuffer(
        agent.collect_data_spec, batch_size=2, max_length=10, seed=0
    )
    loop = ActorLoop(environment, agent, [replay_buffer.add_batch], seed=2)
    made = make_learner(
        agent,
        tmp_path,
        lambda: replay_buffer.as_dataset(sample_batch_size=3, num_steps=2),
    )
    loop.run(5)
    count = agent.observation_normalizer.variables[0]
    assert count == 0
    made.run(4)
    assert count == 4 * 3 * 2
