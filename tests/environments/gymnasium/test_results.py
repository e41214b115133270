import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

from tfrl.environments import gymnasium_wrapper
from tfrl.environments.gymnasium import results, vector_py_environment

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
    environment = gymnasium_wrapper.GymnasiumWrapper(Odd(step=step))
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
    environment = gymnasium_wrapper.GymnasiumWrapper(Odd(reset=reset))
    with pytest.raises(ValueError, match=f"^reset: {message}"):
        environment.reset()


def test_a_reset_of_the_old_gym():
    for gym_env in (OldReset(), gymnasium.wrappers.TimeLimit(OldReset(), 3)):
        with pytest.raises(
            TypeError,
            match=r"^reset: OldReset does not .* expected reset\(self, \*, seed=None, ",
        ):
            gymnasium_wrapper.GymnasiumWrapper(gym_env).reset()


def test_four_values_inside_of_a_gymnasium_wrapper():
    gym_env = gymnasium.wrappers.TimeLimit(Odd(step=(OBSERVATION, 1.0, False, {})), 3)
    environment = gymnasium_wrapper.GymnasiumWrapper(gym_env)
    environment.reset()
    with pytest.raises(
        ValueError, match=r"cannot be unpacked \(.*got 4\).*from Odd, exp"
    ):
        environment.step(0)


def test_ends_that_are_arrays():
    step = OBSERVATION, 1.0, np.zeros(2, bool), False, {}
    environment = gymnasium_wrapper.GymnasiumWrapper(Odd(step=step))
    environment.reset()
    with pytest.raises(
        ValueError,
        match=r"^step: got terminated=array.* from Odd, expected two bools; ",
    ):
        environment.step(0)


def test_an_observation_of_another_kind():
    step = {"a": 1}, 1.0, False, False, {}
    environment = gymnasium_wrapper.GymnasiumWrapper(Odd(step=step))
    environment.reset()
    with pytest.raises(
        ValueError,
        match=r"^observation: got a dict, expected an array of .* environment Odd; ",
    ):
        environment.step(0)


def test_errors_of_the_environment_itself_are_left_as_they_are():
    error = ValueError("not enough values to unpack (expected 5, got 4)")
    environment = gymnasium_wrapper.GymnasiumWrapper(Odd(step=error))
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


@pytest.mark.parametrize(
    "reward", [2.0, 2, True, np.float64(2), np.float32(2), np.int8(2), np.array(2.0)]
)
def test_a_number_becomes_a_float32_array_without_dimensions(reward):
    array = results.as_array(reward, (), "Env-v0")
    assert type(array) is np.ndarray
    assert (array.dtype, array.shape) == (np.float32, ())
    assert array == float(reward)


def test_the_array_of_a_vector_is_a_copy():
    reward = np.ones(2, np.float32)
    array = results.as_array(reward, (2,), "Env-v0")
    reward[:] = 5
    assert array.tolist() == [1.0, 1.0]


@pytest.mark.parametrize(
    ("reward", "got"),
    [
        (float("nan"), "NaN"),
        (float("inf"), "inf"),
        (np.float32(-np.inf), "-inf"),
        (1e300, r"1e\+300 \(infinite in float32\)"),
        (np.float64(-1e39), r"-1e\+39 \(infinite in float32\)"),
    ],
)
@pytest.mark.filterwarnings("error")
def test_numbers_are_finite_in_float32(reward, got):
    with pytest.raises(
        ValueError, match=rf"^reward: got {got} from Env-v0, expected a finite number; "
    ):
        results.as_array(reward, (), "Env-v0")


def test_of_a_vector_the_index_is_named():
    with pytest.raises(ValueError, match=r"got inf at index \[1\] from Env-v0"):
        results.as_array(np.array([0.0, np.inf, np.nan]), (3,), "Env-v0")


@pytest.mark.parametrize(
    ("reward", "got"),
    [
        (None, "None of type NoneType"),
        ("5", "'5' of type str"),
        (1j, "1j of type complex"),
        ({"a": 1}, r"\{'a': 1\} of type dict"),
    ],
)
def test_what_is_not_a_number_is_named_with_its_type(reward, got):
    with pytest.raises(
        ValueError,
        match=rf"^reward: got {got} from Env-v0, expected one number; correct "
        "the second value that its step returns.$",
    ):
        results.as_array(reward, (), "Env-v0")


@pytest.mark.parametrize("reward", [[1.0], np.ones(2), np.ones((1, 1))])
def test_an_array_is_named_with_its_shape(reward):
    with pytest.raises(
        ValueError,
        match=r"^reward: got .* of shape \(.+\) from Env-v0, expected one number; "
        r"return float\(reward\) from its step, or give the wrapper a reward_spec if ",
    ):
        results.as_array(reward, (), "Env-v0")


def test_a_vector_of_another_length_is_named_with_both_shapes():
    with pytest.raises(
        ValueError,
        match=r"of shape \(3,\) from Env-v0, expected numbers of shape \(2,\)",
    ):
        results.as_array(np.ones(3), (2,), "Env-v0")
