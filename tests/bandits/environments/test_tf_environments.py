"""TF-Agents' bandits in TensorFlow: masks, data sets, distributions; seeds."""

import numpy as np
import pytest
import tensorflow as tf
import tensorflow_probability as tfp

from tests.bandits import bandit_data as data
from tfrl.bandits import environments
from tfrl.bandits.environments import dataset_utilities

tfd = tfp.distributions


def _random(seed=0):
    return environments.RandomBanditEnvironment(
        tfd.Independent(tfd.Normal(tf.zeros([8, 2]), 1.0), 1),
        tfd.Normal(tf.fill([8], 5.0), 0.1),
        data.action_spec(4),
        seed=seed,
    )


def _join(observation, mask):
    return {"x": observation, "mask": mask}


def _masked(probability, seed=1):
    return environments.BernoulliActionMaskTFEnvironment(
        environments.load("BernoulliBandit-v0", 500, seed=0),
        _join,
        probability,
        seed=seed,
    )


def _classes(**kwargs):
    rows = tf.range(12)
    dataset = tf.data.Dataset.from_tensor_slices((rows[:, tf.newaxis], rows % 3))
    rewards = tfd.Independent(tfd.Deterministic(tf.eye(3)), 2)
    return environments.ClassificationBanditEnvironment(dataset, rewards, 4, **kwargs)


def test_random_rounds_follow_the_seed():
    first, again, other = (_random(seed) for seed in (0, 0, 1))
    steps = [bandit.reset() for bandit in (first, again, other)]
    np.testing.assert_array_equal(steps[0].observation, steps[1].observation)
    assert (steps[0].observation.numpy() != steps[2].observation.numpy()).any()
    reward = first.step(tf.zeros([8], tf.int32)).reward
    np.testing.assert_allclose(reward, 5, atol=0.5)


def test_random_rounds_need_a_number_for_each_observation():
    observation = tfd.Normal(tf.zeros([8, 2]), 1.0)
    with pytest.raises(ValueError, match=r"observation_distribution: got .* \(8, 2\)"):
        environments.RandomBanditEnvironment(observation, tfd.Normal([0.0], 1.0))
    observation = tfd.Independent(observation, 1)
    with pytest.raises(
        ValueError, match=r"reward_distribution: got batch shape \(1,\)"
    ):
        environments.RandomBanditEnvironment(observation, tfd.Normal([0.0], 1.0))


def test_arms_are_allowed_with_the_probability_and_by_the_seed():
    first, again = _masked(0.3), _masked(0.3)
    mask = first.reset().observation["mask"].numpy()
    np.testing.assert_array_equal(again.reset().observation["mask"], mask)
    assert (mask.sum(axis=1) >= 1).all()
    # A row without an allowed arm gets one of the 5.
    expected = 0.3 + 0.7**5 / 5
    assert mask.mean() == pytest.approx(expected, abs=0.04)
    reached = first.step(mask.argmax(axis=1))
    assert (reached.observation["mask"].numpy() != mask).any()


def test_a_forbidden_arm_is_an_error():
    bandit = _masked(0.0)
    mask = bandit.reset().observation["mask"].numpy()
    assert (mask.sum(axis=1) == 1).all()
    with pytest.raises(tf.errors.InvalidArgumentError, match="not in allowed"):
        bandit.step(mask.argmin(axis=1))


def test_only_a_bandit_gets_masks():
    from tfrl.environments import native

    with pytest.raises(ValueError, match="original_environment: got a NativeEnv"):
        environments.BernoulliActionMaskTFEnvironment(
            native.load("CartPole-v1"), _join, 0.5
        )


def test_compiled_masks_are_those_of_the_plain_graph():
    def play():
        mask = bandit.reset().observation["mask"]
        reached = bandit.step(tf.argmax(mask, axis=1, output_type=tf.int32))
        return mask, reached.reward, reached.observation["mask"]

    found = []
    for jit_compile in (False, True):
        bandit = _masked(0.3)
        found.append(tf.function(play, jit_compile=jit_compile, autograph=False)())
    for plain, compiled in zip(*found, strict=True):
        np.testing.assert_array_equal(plain, compiled)


def test_a_class_is_the_arm_with_the_reward():
    bandit = _classes(shuffle_buffer_size=12, seed=0)
    step = bandit.reset()
    for right in (1, 0, 1):
        best = step.observation[:, 0] % 3
        step = bandit.step(best if right else (best + 1) % 3)
        np.testing.assert_array_equal(step.reward, tf.fill([4], float(right)))
        np.testing.assert_array_equal(bandit.compute_optimal_action(), best)
        np.testing.assert_array_equal(bandit.compute_optimal_reward(), tf.ones([4]))


def test_the_place_in_a_data_set_is_no_state():
    with pytest.raises(NotImplementedError, match=r"problems\.classification"):
        _classes().get_state()


def test_mushrooms_have_features_and_labels(tmp_path):
    path = tmp_path / "mushrooms.csv"
    path.write_text(",".join("p" + "a" * 22) + "\n" + ",".join("eb" + "a" * 21))
    dataset = dataset_utilities.convert_mushroom_csv_to_tf_dataset(str(path), 2)
    found = {int(label): x.numpy().tolist() for x, label in dataset.take(10)}
    assert found == {0: [1, 0] + [1] * 21, 1: [0, 1] + [1] * 21}
    path.write_text("1,2\n")
    with pytest.raises(ValueError, match="file_path: got 2 columns"):
        dataset_utilities.convert_mushroom_csv_to_tf_dataset(str(path))


def test_a_poisonous_mushroom_poisons_with_the_probability():
    rewards = dataset_utilities.mushroom_reward_distribution(
        r_noeat=0.0,
        r_eat_safe=5.0,
        r_eat_poison_bad=-35.0,
        r_eat_poison_good=5.0,
        prob_poison_bad=0.75,
    )
    np.testing.assert_allclose(rewards.mean(), [[0, -25], [0, 5]])
    drawn = rewards.sample(50, seed=tf.constant([0, 1]))[:, 0, 1].numpy()
    assert set(drawn) == {-35, 5}


def test_cover_types_count_from_0(tmp_path):
    path = tmp_path / "covtype.data"
    path.write_text("10,20,7\n30,40,1\n")
    dataset = dataset_utilities.convert_covertype_dataset(str(path), 2)
    found = {int(label): x.numpy().tolist() for x, label in dataset.take(10)}
    assert found == {6: [10, 20], 0: [30, 40]}
