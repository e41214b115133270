import gymnasium
import numpy as np
import pytest

from tfrl.environments import gymnasium_wrapper, wrappers
from tfrl.environments.atari_wrappers import AtariTimeLimit, FireOnReset, FrameStack4


class Game(gymnasium.Env):
    """Shows how many frames were played; a life is lost every `life` steps of three.

    Like `AtariPreprocessing` it ends episodes at a lost life, but goes on then.
    """

    action_space = gymnasium.spaces.Discrete(4)
    lives_per_game = 3

    def __init__(
        self, life=3, shape=(2, 2, 1), meanings=("NOOP", "FIRE", "UP", "DOWN")
    ):
        self.observation_space = gymnasium.spaces.Box(0, 255, shape, np.uint8)
        self.life, self.meanings = life, meanings
        self.games, self.actions = 0, []
        self.life_lost = self.game_over = False

    def get_action_meanings(self):
        return list(self.meanings)

    def reset(self, *, seed=None, options=None):
        if not self.life_lost:
            self.games += 1
            self.frame = 0
        self.life_lost = self.game_over = False
        return self._observe(), {}

    def step(self, action):
        self.actions.append(action)
        self.frame += 1
        end = self.frame % self.life == 0
        self.game_over = self.frame == self.life * self.lives_per_game
        self.life_lost = end and not self.game_over
        return self._observe(), 1.0, end, False, {}

    def _observe(self):
        return np.full(self.observation_space.shape, self.frame, np.uint8)


def limited(duration, **kwargs):
    return AtariTimeLimit(gymnasium_wrapper.GymnasiumWrapper(Game(**kwargs)), duration)


def play(environment, steps):
    """Returns the step types, and the number of the frame that was seen at each."""
    taken = [environment.reset(), *(environment.step(0) for _ in range(steps))]
    return [(int(t.step_type), int(t.observation.flat[0])) for t in taken]


@pytest.mark.parametrize("shape", [(2, 3, 1), (2, 3)])
def test_four_frames_are_the_channels_of_one_picture(shape):
    env = FrameStack4(Game(life=99, shape=shape))
    assert env.observation_space == gymnasium.spaces.Box(0, 255, (2, 3, 4), np.uint8)
    seen = [env.reset()[0]] + [env.step(0)[0] for _ in range(5)]
    assert all(env.observation_space.contains(observation) for observation in seen)
    assert [observation[1, 2].tolist() for observation in seen] == [
        [0, 0, 0, 0],
        [0, 0, 0, 1],
        [0, 0, 1, 2],
        [0, 1, 2, 3],
        [1, 2, 3, 4],
        [2, 3, 4, 5],
    ]


def test_a_reset_forgets_the_frames_before():
    env = FrameStack4(Game())
    env.reset()
    for _ in range(3):
        env.step(0)
    assert env.reset()[0][0, 0].tolist() == [3, 3, 3, 3]


def test_attributes_are_those_of_the_environment_inside():
    env = FrameStack4(Game())
    assert env.game_over is False
    assert env.get_action_meanings() == ["NOOP", "FIRE", "UP", "DOWN"]
    with pytest.raises(AttributeError):
        _ = env.no_such_thing


@pytest.mark.parametrize(
    "space",
    [
        gymnasium.spaces.Box(0, 255, (4, 4, 3), np.uint8),
        gymnasium.spaces.Box(0, 1, (4, 4, 1), np.float32),
        gymnasium.spaces.Box(0, 255, (4,), np.uint8),
        gymnasium.spaces.Discrete(4),
    ],
)
def test_only_grey_pictures_are_stacked(space):
    game = Game()
    game.observation_space = space
    with pytest.raises(ValueError, match=r"env: got the observation space.*before Fr"):
        FrameStack4(game)


def test_a_shot_is_fired_at_every_reset():
    env = FireOnReset(Game(life=5))
    observation, _ = env.reset()
    assert env.unwrapped.actions == [1, 2]
    assert observation[0, 0, 0] == 2
    env.reset()
    assert env.unwrapped.actions == [1, 2, 1, 2]


@pytest.mark.parametrize("meanings", [("NOOP", "UP", "DOWN"), ("NOOP", "FIRE")])
def test_games_without_fire_are_left_alone(meanings):
    env = FireOnReset(Game(meanings=meanings))
    observation, _ = env.reset()
    assert env.unwrapped.actions == []
    assert observation[0, 0, 0] == 0


def test_an_end_while_firing_is_reset():
    env = FireOnReset(Game(life=1))
    observation, _ = env.reset()
    assert not env.unwrapped.life_lost
    assert observation[0, 0, 0] == 2


def test_the_limit_counts_the_steps_of_a_game_over_its_lives():
    environment = limited(5)
    assert play(environment, 8) == [
        *((0, 0), (1, 1), (1, 2), (2, 3)),
        # The second life, in the same game, until the limit.
        *((0, 3), (1, 4), (2, 5)),
        *((0, 0), (1, 1)),
    ]
    assert environment.gym.games == 2


def test_a_limit_at_a_lost_life_starts_a_new_game():
    environment = limited(3)
    assert play(environment, 5) == [(0, 0), (1, 1), (1, 2), (2, 3), (0, 0), (1, 1)]
    assert environment.gym.games == 2


def test_a_game_that_is_cut_off_keeps_its_discount():
    environment = limited(2)
    environment.reset()
    steps = [environment.step(0) for _ in range(2)]
    assert [int(step.step_type) for step in steps] == [1, 2]
    assert [float(step.discount) for step in steps] == [1, 1]
    assert environment.game_over


def test_a_game_that_ends_is_not_truncated():
    environment = limited(100, life=2)
    types = [step_type for step_type, _ in play(environment, 9)]
    assert types == [0, 1, 2, 0, 1, 2, 0, 1, 2, 0]
    assert environment.gym.games == 2


def test_reset_in_mid_episode_starts_a_new_game_and_count():
    environment = limited(2)
    environment.reset()
    environment.step(0)
    environment.reset()
    assert not environment.step(0).is_last()
    assert environment.step(0).is_last()


def test_wrappers_around_it_do_not_end_the_game():
    environment = wrappers.RunStats(limited(100))
    play(environment, 6)
    assert (environment.episodes, environment.gym.games) == (1, 1)


def test_other_environments_are_limited_too():
    inner = gymnasium_wrapper.GymnasiumWrapper(gymnasium.make("CartPole-v1"))
    environment = AtariTimeLimit(inner, 3)
    environment.seed(0)
    environment.reset()
    assert [bool(environment.step(i % 2).is_last()) for i in range(4)] == [
        False,
        False,
        True,
        False,
    ]
    inner = gymnasium_wrapper.GymnasiumWrapper(gymnasium.make("CartPole-v1"))
    environment = AtariTimeLimit(inner, 100)
    environment.reset()
    while not environment.step(0).is_last():
        assert not environment.game_over
    assert environment.game_over


def test_a_fraction_of_a_step_is_rounded_up():
    assert limited(2.5).duration == 3


def test_the_limit_is_positive():
    with pytest.raises(ValueError, match=r"duration: .* got 0"):
        limited(0)
