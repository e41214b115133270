import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

from tfrl.environments.gymnasium import vector_py_environment, wrapper

OBSERVATION = np.zeros(2, np.float32)


class Odd(gymnasium.Env):
    """Returns what it is told to."""

    observation_space = spaces.Box(-1, 1, (2,), np.float32)
    action_space = spaces.Discrete(2)

    def __init__(
        self, reset=(OBSERVATION, {}), step=(OBSERVATION, 1.0, False, False, {})
    ):
        self.results = reset, step

    def reset(self, *, seed=None, options=None):
        return self.results[0]

    def step(self, action):
        if isinstance(self.results[1], Exception):
            raise self.results[1]
        return self.results[1]


class OldReset(Odd):
    def reset(self):
        return OBSERVATION


FIVE = r"the five values \(observation, reward, terminated, truncated, info\); follow"
TWO = r"the two values \(observation, info\); follow Gymnasium's API, or .* shimmy\."


@pytest.mark.parametrize(
    ("step", "message"),
    [
        (
            (OBSERVATION, 1.0, False, {}),
            f"got a tuple of 4 values from Odd, expected {FIVE}",
        ),
        (None, f"got a NoneType from Odd, expected {FIVE}"),
        (OBSERVATION, rf"got a ndarray of shape \(2,\) from Odd, expected {FIVE}"),
    ],
)
def test_a_step_that_is_not_five_values(step, message):
    environment = wrapper.GymnasiumWrapper(Odd(step=step))
    environment.reset()
    with pytest.raises(ValueError, match=f"^step: {message}"):
        environment.step(0)


@pytest.mark.parametrize(
    ("reset", "message"),
    [
        (OBSERVATION, rf"got a ndarray of shape \(2,\) from Odd, expected {TWO}"),
        (np.zeros(4), rf"got a ndarray of shape \(4,\) from Odd, expected {TWO}"),
        (None, f"got a NoneType from Odd, expected {TWO}"),
    ],
)
def test_a_reset_that_is_not_an_observation_and_a_dict(reset, message):
    environment = wrapper.GymnasiumWrapper(Odd(reset=reset))
    with pytest.raises(ValueError, match=f"^reset: {message}"):
        environment.reset()


def test_a_reset_of_the_old_gym():
    for gym_env in (OldReset(), gymnasium.wrappers.TimeLimit(OldReset(), 3)):
        with pytest.raises(
            TypeError,
            match=r"^reset: OldReset does not .* expected reset\(self, \*, seed=None, ",
        ):
            wrapper.GymnasiumWrapper(gym_env).reset()


def test_four_values_inside_of_a_gymnasium_wrapper():
    gym_env = gymnasium.wrappers.TimeLimit(Odd(step=(OBSERVATION, 1.0, False, {})), 3)
    environment = wrapper.GymnasiumWrapper(gym_env)
    environment.reset()
    with pytest.raises(
        ValueError, match=r"cannot be unpacked \(.*got 4\).*from Odd, exp"
    ):
        environment.step(0)


def test_ends_that_are_arrays():
    step = OBSERVATION, 1.0, np.zeros(2, bool), False, {}
    environment = wrapper.GymnasiumWrapper(Odd(step=step))
    environment.reset()
    with pytest.raises(
        ValueError,
        match=r"^step: got terminated=array.* from Odd, expected two bools; ",
    ):
        environment.step(0)


def test_an_observation_of_another_kind():
    step = {"a": 1}, 1.0, False, False, {}
    environment = wrapper.GymnasiumWrapper(Odd(step=step))
    environment.reset()
    with pytest.raises(
        ValueError,
        match=r"^observation: got a dict, expected an array of .* environment Odd; ",
    ):
        environment.step(0)


def test_errors_of_the_environment_itself_are_left_as_they_are():
    error = ValueError("not enough values to unpack (expected 5, got 4)")
    environment = wrapper.GymnasiumWrapper(Odd(step=error))
    environment.reset()
    with pytest.raises(ValueError) as raised:  # noqa: PT011
        environment.step(0)
    assert raised.value is error


@pytest.mark.parametrize(
    ("step", "message"),
    [
        (
            (OBSERVATION, 1.0, False, {}),
            "cannot be unpacked .* from SyncVectorEnv of Odd",
        ),
        (
            (OBSERVATION, [1, 2], False, False, {}),
            "member of SyncVectorEnv of Odd that Gy",
        ),
        (
            (np.zeros(3), 1.0, False, False, {}),
            r"cannot batch \(Output array is the wrong",
        ),
        (
            (OBSERVATION, 1.0, False, False, None),
            r"member of .*'items'\), expected the f",
        ),
    ],
)
def test_odd_results_of_a_member(step, message):
    environment = vector_py_environment.VectorPyEnvironment(
        gymnasium.vector.SyncVectorEnv([lambda: Odd(step=step)] * 2)
    )
    environment.reset()
    with pytest.raises(ValueError, match=f"^step: .*{message}"):
        environment.step(np.zeros(2, np.int64))


def test_errors_of_a_member_itself_are_left_as_they_are():
    error = ValueError("the wheel came off")
    environment = vector_py_environment.VectorPyEnvironment(
        gymnasium.vector.SyncVectorEnv([lambda: Odd(step=error)] * 2)
    )
    environment.reset()
    with pytest.raises(ValueError, match=r"^the wheel came off$"):
        environment.step(np.zeros(2, np.int64))
