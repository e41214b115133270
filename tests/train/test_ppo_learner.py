"""A PPO learner: which steps it trains on, how often, and when normalizers move.

Observations number the time steps: episodes of three steps are 0 1 2 3, 4 5 6 7 and so
on, and the frames at 3, 7, ... are boundaries.
"""

import itertools
import types

import keras
import numpy as np
import pytest
import tensorflow as tf

from tfrl import testing
from tfrl.agents.ppo import ppo_agent
from tfrl.environments import tf_py_environment
from tfrl.networks import actor_distribution_network, value_network
from tfrl.replay_buffers import tf_uniform_replay_buffer
from tfrl.specs import array_spec
from tfrl.train import actor, ppo_learner

NUM_EPOCHS, MINIBATCH_SIZE = 2, 4


class Setup:
    """An agent, an actor that fills a buffer, and a learner that tells what it does."""

    def __init__(self, root_dir, **kwargs):
        numbers = itertools.count()
        environment = tf_py_environment.TFPyEnvironment(
            testing.CountingEnvironment(
                3,
                observation_spec=array_spec.ArraySpec((1,), np.float32, "number"),
                observe=lambda _: np.float32([next(numbers)]),
            )
        )
        specs = environment.observation_spec(), environment.action_spec()
        self.agent = ppo_agent.PPOAgent(
            environment.time_step_spec(),
            environment.action_spec(),
            keras.optimizers.SGD(0.01),
            actor_distribution_network.ActorDistributionNetwork(
                *specs, fc_layer_params=(4,), seed=1
            ),
            value_network.ValueNetwork(specs[0], fc_layer_params=(4,)),
            importance_ratio_clipping=0.2,
            use_gae=True,
            num_epochs=1,
            initial_adaptive_kl_beta=0.01,
            adaptive_kl_target=100.0,
            compute_value_and_advantage_in_train=False,
            update_normalizers_in_train=False,
        )
        self.replay_buffer = tf_uniform_replay_buffer.TFUniformReplayBuffer(
            self.agent.collect_data_spec, batch_size=1, max_length=100
        )
        self.actor = actor.Actor(
            environment,
            self.agent.collect_policy,
            self.agent.train_step_counter,
            episodes_per_run=3,
            observers=[self.replay_buffer.add_batch],
        )
        # The numbers in each minibatch, and the normalizer's mean at that time.
        self.minibatches, self.means = [], []
        self.learner = ppo_learner.PPOLearner(
            root_dir,
            self.agent.train_step_counter,
            self.agent,
            self.make_dataset,
            num_samples=1,
            after_train_strategy_step_fn=self._record,
            summary_interval=0,
            seed=0,
            **{"normalization_dataset_fn": None, **kwargs},
        )

    def collect(self):
        self.replay_buffer.clear()
        self.actor.run()

    def make_dataset(self):
        def gather(_):
            return self.agent.preprocess_sequence(self.replay_buffer.gather_all()), ()

        return tf.data.Dataset.range(1).map(gather)

    @property
    def mean(self):
        """What the observation normalizer maps to 0."""
        normalized = self.agent.observation_normalizer.normalize(
            tf.constant([[0.0]]), variance_epsilon=0.0, clip_value=0.0
        )
        scale = normalized - self.agent.observation_normalizer.normalize(
            tf.constant([[1.0]]), variance_epsilon=0.0, clip_value=0.0
        )
        return normalized / scale

    def _record(self, experience_and_info, loss_info):
        def keep(observation, mean):
            self.minibatches.append(observation.ravel().astype(int).tolist())
            self.means.append(float(mean.item()))
            return np.int32(0)

        experience, _ = experience_and_info
        tf.numpy_function(keep, [experience.observation, self.mean], tf.int32)


@pytest.fixture(scope="module")
def setup(tmp_path_factory):
    """After two iterations in minibatches."""
    made = Setup(
        tmp_path_factory.mktemp("minibatches"),
        num_epochs=NUM_EPOCHS,
        minibatch_size=MINIBATCH_SIZE,
    )
    made.kept, made.moved_to = [], []
    for _ in range(2):
        made.collect()
        made.learner.run()
        made.kept.append((list(made.minibatches), list(made.means)))
        made.moved_to.append(float(made.mean.numpy().item()))
        made.minibatches.clear()
        made.means.clear()
    made.beta_then = made.agent.adaptive_kl_beta.numpy()
    return made


def test_each_epoch_has_each_step_once_and_no_boundary(setup):
    minibatches, _ = setup.kept[0]
    # The last frame, a boundary, only gives the last observation.
    steps = [0, 1, 2, 4, 5, 6, 8, 9, 10]
    epochs = minibatches[:3], minibatches[3:]
    for epoch in epochs:
        assert sorted(itertools.chain(*epoch)) == steps
    assert epochs[0] != epochs[1]


def test_minibatches_are_of_equal_sizes(setup):
    for minibatches, _ in setup.kept:
        assert [len(minibatch) for minibatch in minibatches] == [3] * 6
    assert setup.learner.train_step_numpy == 12


def test_normalizers_move_after_the_training(setup):
    (_, first), (_, second) = setup.kept
    np.testing.assert_allclose(first, 0.0, atol=1e-6)
    # Frames 0 to 10, and the second time 0 to 10 and 12 to 22.
    np.testing.assert_allclose(setup.moved_to[0], np.mean(range(11)), rtol=1e-3)
    np.testing.assert_allclose(second, setup.moved_to[0], rtol=1e-6)
    seen = [*range(11), *range(12, 23)]
    np.testing.assert_allclose(setup.moved_to[1], np.mean(seen), rtol=1e-3)


@pytest.fixture(scope="module")
def sequences(tmp_path_factory):
    """Two iterations over sequences, with a second dataset for the normalizers."""
    frames = []

    def make_normalization_dataset():
        return tf.data.Dataset.range(1).map(
            lambda _: (frames[0].replay_buffer.gather_all(), ())
        )

    class Delayed(Setup):
        def __init__(self, *args, **kwargs):
            frames.append(self)
            super().__init__(*args, **kwargs)

    made = Delayed(
        tmp_path_factory.mktemp("sequences"),
        normalization_dataset_fn=make_normalization_dataset,
    )
    made.loss_infos = []
    for _ in range(2):
        made.collect()
        made.loss_infos.append(made.learner.run())
    made.mean_then = float(made.mean.numpy().item())
    made.num_minibatches_then = len(made.minibatches)
    made.beta_then = made.agent.adaptive_kl_beta.numpy()
    return made


@pytest.mark.slow
def test_the_kl_penalty_is_adapted_once_a_run(setup, sequences):
    """The policy moves less than its target in each of two runs."""
    for made in (setup, sequences):
        np.testing.assert_allclose(made.beta_then, 0.01 / 1.5**2, rtol=1e-6)


@pytest.mark.slow
def test_ratios_start_at_one_although_the_normalizers_have_moved(sequences):
    for loss_info in sequences.loss_infos:
        assert abs(float(loss_info.extra.approx_kl)) < 1e-6
        assert float(loss_info.extra.clip_fraction) == 0
    assert sequences.num_minibatches_then == 2
    # The second dataset has all 24 frames, the last boundaries included.
    np.testing.assert_allclose(sequences.mean_then, np.mean(range(24)), rtol=1e-3)


def test_a_dataset_that_ends_early_is_an_error(sequences, monkeypatch):
    monkeypatch.setattr(sequences.learner, "_num_samples", 2)
    with pytest.raises(ValueError, match="experience_dataset_fn: its dataset ended"):
        sequences.learner.run()


def fake_agent(is_recurrent=False, **flags):
    flags = {
        "update_normalizers_in_train": False,
        "compute_value_and_advantage_in_train": False,
        **flags,
    }
    policy = types.SimpleNamespace(is_recurrent=is_recurrent)
    return types.SimpleNamespace(collect_policy=policy, **flags)


@pytest.mark.parametrize(
    ("agent", "arguments", "text"),
    [
        (fake_agent(), {"num_samples": 0}, "num_samples: .* got 0"),
        (fake_agent(), {"num_epochs": 0}, "num_epochs: .* got 0"),
        (
            fake_agent(update_normalizers_in_train=True),
            {"minibatch_size": None},
            "make the agent with update_normalizers_in_train=False",
        ),
        (
            fake_agent(compute_value_and_advantage_in_train=True),
            {},
            "an agent with compute_value_and_advantage_in_train=True",
        ),
        (
            fake_agent(is_recurrent=True),
            {},
            "minibatch_size: got 8 for a recurrent agent",
        ),
    ],
)
def test_what_it_cannot_train_is_refused(tmp_path, agent, arguments, text):
    arguments = {"num_samples": 1, "minibatch_size": 8, **arguments}
    with pytest.raises(ValueError, match=text):
        ppo_learner.PPOLearner(tmp_path, None, agent, None, None, **arguments)
