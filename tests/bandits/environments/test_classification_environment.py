"""Data sets of classes as bandits: rewards by hand, and files of the user."""

import numpy as np
import pytest
import tensorflow as tf
import tensorflow_probability as tfp

from tfrl.bandits import environments
from tfrl.bandits.environments import dataset_utilities

tfd = tfp.distributions


def _classes(**kwargs):
    rows = tf.range(12)
    dataset = tf.data.Dataset.from_tensor_slices((rows[:, tf.newaxis], rows % 3))
    rewards = tfd.Independent(tfd.Deterministic(tf.eye(3)), 2)
    return environments.ClassificationBanditEnvironment(dataset, rewards, 4, **kwargs)


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
        r_noeat=0,
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
