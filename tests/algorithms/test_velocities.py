import numpy as np

from tfrl.algorithms import velocities, worlds


def test_names_say_which_elements_are_left():
    assert velocities.split("CartPoleNoVel-v1") == ("CartPole-v1", (0, 2))
    for name in ("CartPole-v1", "HopperNoVel-v5"):
        assert velocities.split(name) == (name, None)


def test_positions_are_observed_by_one_environment_and_by_several():
    for num_envs in (1, 2):
        plain = worlds.make_environment("Pendulum-v1", num_envs, 3)
        bare = worlds.make_environment("PendulumNoVel-v1", num_envs, 3)
        assert bare.observation_spec().shape == [2]
        action = np.zeros([num_envs, 1], np.float32)
        for environment in (plain, bare):
            environment.reset()
        np.testing.assert_array_equal(
            bare.step(action).observation, plain.step(action).observation[:, :2]
        )
    assert worlds.make_video_environment("PendulumNoVel-v1") is not None
