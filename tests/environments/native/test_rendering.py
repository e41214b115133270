import numpy as np
import pytest
import tensorflow as tf

from tfrl.environments import native, suite_gym
from tfrl.environments.native import rendering


@pytest.mark.parametrize("name", native.names())
def test_pictures_are_gymnasiums_of_the_same_state(name):
    environment = native.load(name, batch_size=2, seed=1)
    pictures = environment.render()
    theirs = suite_gym.load(name)
    theirs.reset()
    theirs.gym.unwrapped.state = environment.physical_state().numpy()[1]
    np.testing.assert_array_equal(pictures[1], theirs.gym.unwrapped.render())
    assert pictures.dtype == np.uint8
    assert pictures.shape == (2, *pictures.shape[1:3], 3)


def test_a_renderer_makes_no_environment_before_it_draws():
    assert rendering.GymnasiumRenderer("CartPole-v1")._gym_env is None


def test_other_modes_are_an_error():
    with pytest.raises(
        ValueError, match="mode: got 'human', expected 'rgb_array', bec"
    ):
        native.load("CartPole-v1").render("human")


def test_dynamics_without_a_picture_say_so():
    dynamics = native.Dynamics(
        initial=lambda random: random,
        step=lambda state, action, random: native.Outcome(
            state, state[:, 0], state[:, 0] > 2
        ),
        observation_spec=tf.TensorSpec([1], tf.float32),
        action_spec=tf.TensorSpec([], tf.int32),
        num_initial_randoms=1,
    )
    with pytest.raises(NotImplementedError, match="does not support it"):
        native.NativeEnvironment(dynamics).render()
