import imageio.v2 as imageio
import numpy as np
import pytest

from tfrl.environments import suite_gym, tf_py_environment
from tfrl.environments.gymnasium import vector_py_environment
from tfrl.policies import random_tf_policy
from tfrl.train.runs import video


def cart_pole():
    environment = suite_gym.load("CartPole-v1")
    environment.seed(0)
    return tf_py_environment.TFPyEnvironment(environment)


def random_policy(environment):
    return random_tf_policy.RandomTFPolicy(
        environment.time_step_spec(), environment.action_spec()
    )


def test_whole_episodes_are_filmed_frame_by_frame(tmp_path):
    environment = cart_pole()
    path = tmp_path / "film.mp4"
    returns = video.record_video(environment, random_policy(environment), path, 2)
    assert len(returns) == 2
    with imageio.get_reader(path) as reader:
        frames = [frame for frame in reader.iter_data()]
    # The first frame of each episode comes before its first step.
    assert len(frames) == sum(returns) + 2
    assert frames[0].shape == (400, 600, 3)
    assert np.std(frames[0]) > 0


def test_a_long_film_is_cut(tmp_path):
    environment = cart_pole()
    path = tmp_path / "film.mp4"
    returns = video.record_video(
        environment, random_policy(environment), path, 3, max_frames=5
    )
    assert sum(returns) == 5


def test_a_batch_of_environments_is_an_error(tmp_path):
    environment = tf_py_environment.TFPyEnvironment(
        vector_py_environment.load("CartPole-v1", 2)
    )
    with pytest.raises(ValueError, match="expected batch size 1 to record, got 2"):
        video.record_video(environment, random_policy(environment), tmp_path / "f.mp4")
