import pytest

from tfrl.environments import native


@pytest.mark.parametrize(
    ("name", "given", "limit"),
    [
        ("CartPole-v0", None, 200),
        ("CartPole-v1", 7, 7),
        ("CartPole", None, 500),
        ("CartPole-v1", 0, None),
    ],
)
def test_the_limit_is_gymnasiums_unless_given(name, given, limit):
    environment = native.load(name, batch_size=2, max_episode_steps=given)
    assert environment.dynamics.max_episode_steps == limit
    assert environment.batch_size == 2


def test_an_unknown_name_is_an_error_that_names_the_nearest():
    with pytest.raises(
        ValueError,
        match="environment_name: got 'cartpol-v1', expected one of Acrobot-v1, .*, "
        r"Pendulum-v1; did you mean CartPole-v1\?",
    ):
        native.load("cartpol-v1")


def test_a_name_like_none_of_them_is_an_error():
    with pytest.raises(ValueError, match=r"got 'Go', expected .*; write its Dynamics "):
        native.load("Go")


def test_a_limit_below_zero_is_an_error():
    with pytest.raises(ValueError, match=r"max_episode_steps: expected .* got -1"):
        native.load("CartPole-v1", max_episode_steps=-1)
