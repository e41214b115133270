import numpy as np
import pytest

from tfrl.environments.gymnasium import rewards


@pytest.mark.parametrize(
    "reward", [2.0, 2, True, np.float64(2), np.float32(2), np.int8(2), np.array(2.0)]
)
def test_a_number_becomes_a_float32_array_without_dimensions(reward):
    array = rewards.as_array(reward, (), "Env-v0")
    assert type(array) is np.ndarray
    assert (array.dtype, array.shape) == (np.float32, ())
    assert array == float(reward)


def test_the_array_of_a_vector_is_a_copy():
    reward = np.ones(2, np.float32)
    array = rewards.as_array(reward, (2,), "Env-v0")
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
        rewards.as_array(reward, (), "Env-v0")


def test_of_a_vector_the_index_is_named():
    with pytest.raises(ValueError, match=r"got inf at index \[1\] from Env-v0"):
        rewards.as_array(np.array([0.0, np.inf, np.nan]), (3,), "Env-v0")


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
        rewards.as_array(reward, (), "Env-v0")


@pytest.mark.parametrize("reward", [[1.0], np.ones(2), np.ones((1, 1))])
def test_an_array_is_named_with_its_shape(reward):
    with pytest.raises(
        ValueError,
        match=r"^reward: got .* of shape \(.+\) from Env-v0, expected one number; "
        r"return float\(reward\) from its step, or give the wrapper a reward_spec if ",
    ):
        rewards.as_array(reward, (), "Env-v0")


def test_a_vector_of_another_length_is_named_with_both_shapes():
    with pytest.raises(
        ValueError,
        match=r"of shape \(3,\) from Env-v0, expected numbers of shape \(2,\)",
    ):
        rewards.as_array(np.ones(3), (2,), "Env-v0")
