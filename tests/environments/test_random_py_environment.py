import numpy as np
import pytest

from tfrl.environments import random_py_environment, utils
from tfrl.specs import array_spec

OBSERVATION = array_spec.BoundedArraySpec((2, 3), np.int32, -10, 10)
ACTION = array_spec.BoundedArraySpec((2,), np.int32, -1, 1)


def make(*args, observation_spec=OBSERVATION, **kwargs):
    return random_py_environment.RandomPyEnvironment(observation_spec, *args, **kwargs)


def episode_lengths(environment, episodes):
    lengths = []
    for _ in range(episodes):
        assert environment.reset().is_first()
        length = 1
        while not environment.step(0).is_last():
            length += 1
        lengths.append(length)
    return lengths


DTYPES = [np.bool_, np.uint8, np.int8, np.int64, np.float16, np.float32, np.float64]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("batch_size", [None, 1, 7])
def test_time_steps_follow_their_specs(dtype, batch_size):
    spec = {"a": (array_spec.BoundedArraySpec((2,), dtype, 0, 1),)}
    environment = make(ACTION, 0.4, observation_spec=spec, batch_size=batch_size)
    assert environment.batched == (batch_size is not None)
    utils.validate_py_environment(environment, 2)


def test_equal_seeds_give_equal_episodes():
    environment, other = make(seed=1), make(seed=2)
    other.seed(1)
    for _ in range(20):
        one, two = environment.step(0), other.step(0)
        assert one.step_type == two.step_type
        np.testing.assert_array_equal(one.observation, two.observation)


def test_a_saved_state_continues_exactly():
    environment = make(seed=1)
    environment.reset()
    state = environment.get_state()
    expected = [environment.step(0).observation for _ in range(20)]
    resumed = make(seed=5)
    resumed.reset()
    resumed.set_state(state)
    np.testing.assert_array_equal(
        [resumed.step(0).observation for _ in range(20)], expected
    )


@pytest.mark.parametrize("duration", [1, 5])
def test_durations_are_kept(duration):
    shortest = episode_lengths(
        make(episode_end_probability=0.9, min_duration=duration), 20
    )
    assert min(shortest) == duration
    longest = episode_lengths(
        make(episode_end_probability=0.01, max_duration=duration), 20
    )
    assert max(longest) == duration


def test_a_reset_in_mid_episode_restarts_the_duration():
    environment = make(episode_end_probability=0.0, max_duration=3)
    environment.reset()
    environment.step(0)
    environment.step(0)
    assert episode_lengths(environment, 1) == [3]


def test_without_auto_reset_an_episode_continues_after_its_end():
    environment = make(auto_reset=False, episode_end_probability=1.0)
    environment.reset()
    assert [int(environment.step(0).step_type) for _ in range(2)] == [2, 2]


def test_rewards_are_the_functions():
    environment = make(
        ACTION, 0.0, reward_fn=lambda step_type, action, _: step_type + action.sum()
    )
    assert environment.step(np.array([1, 1])).reward == 0
    assert environment.step(np.array([1, 1])).reward == 1 + 2


def test_discounts_of_the_members():
    environment = make(batch_size=2, discount=[0.5, 0.25], episode_end_probability=0.0)
    environment.reset()
    assert environment.step(0).discount.tolist() == [0.5, 0.25]


def test_pictures_are_of_the_size_asked_for():
    environment = make(render_size=(4, 5, 3))
    picture = environment.render()
    assert (picture.shape, picture.dtype) == ((4, 5, 3), np.uint8)
    with pytest.raises(ValueError, match="mode: got 'human', expected 'rgb_array'"):
        environment.render("human")


def test_actions_are_checked():
    environment = make(ACTION)
    environment.reset()
    with pytest.raises(ValueError, match=r"action: got shape \(\), expected \(2,\)"):
        environment.step(0)
    with pytest.raises(
        ValueError,
        match=r"action: got 2 at index \[1\], expected a number in \[-1, 1\]",
    ):
        environment.step([0, 2])


@pytest.mark.parametrize(
    ("kwargs", "message"),
    [
        (
            {"episode_end_probability": 2},
            r"episode_end_probability: .* got 2",
        ),
        ({"batch_size": 0}, r"batch_size: .* got 0"),
        (
            {"batch_size": 3, "discount": [1, 1]},
            r"discount: got shape \(2,\), expected",
        ),
        (
            {"min_duration": 5, "max_duration": 3},
            "max_duration: got 3 with min_duratio",
        ),
    ],
)
def test_arguments_are_checked(kwargs, message):
    with pytest.raises(ValueError, match=message):
        make(**kwargs)


def test_rewards_and_specs_are_checked():
    environment = make(batch_size=5, reward_fn=lambda *_: 1.0)
    environment.reset()
    with pytest.raises(ValueError, match=r"reward_fn: got shape \(\), expected \(5,\)"):
        environment.step(0)
    with pytest.raises(
        TypeError, match="observation_spec: got 3 of type int in the ne"
    ):
        make(observation_spec=(3,))
