"""The stack of Mnih et al. 2015 on games of ale-py, beside ale-py itself."""

import ale_py
import dm_env
import gymnasium
import numpy as np
import pytest
from absl.testing import absltest
from dm_env import specs, test_utils

from tests.acme.wrappers.scripted import Scripted, play
from tfrl.acme import wrappers

gymnasium.register_envs(ale_py)
ale_py.ALEInterface.setLoggerMode(ale_py.LoggerMode.Error)
# FIRE and moves, by their index among the actions of Breakout and Space Invaders.
ACTIONS = np.random.default_rng(0).integers(4, size=400)
ACTIONS[::10] = 1


def adapter(game="Breakout"):
    environment = wrappers.GymAtariAdapter(gymnasium.make(f"{game}NoFrameskip-v4"))
    environment.seed(3)
    return environment


def console(game="Breakout"):
    """Returns a new emulator of ale-py, as `adapter` has one, and its actions."""
    environment = gymnasium.make(f"{game}NoFrameskip-v4")
    environment.reset(seed=3)
    return environment.unwrapped.ale, environment.unwrapped.ale.getMinimalActionSet()


def luminance(screen):
    return screen @ np.array([0.299, 0.587, 0.114])


def frame_number(environment):
    """Returns the number of frames of the current game, by ale-py's own count."""
    while isinstance(environment, wrappers.EnvironmentWrapper):
        environment = environment.environment
    return environment.environment.unwrapped.ale.getEpisodeFrameNumber()


@pytest.mark.parametrize(
    "game", ["Breakout", pytest.param("SpaceInvaders", marks=pytest.mark.slow)]
)
def test_each_picture_is_the_maximum_of_the_third_and_fourth_frame(game):
    environment = wrappers.AtariWrapper(adapter(game), scale_dims=None)
    ale, legal = console(game)
    observation = environment.reset().observation
    assert not observation[..., :3].any()
    np.testing.assert_allclose(
        observation[..., 3], luminance(ale.getScreenRGB()), atol=1
    )
    differ = 0
    stack = [observation[..., 3]]
    for action in ACTIONS[:60]:
        timestep = environment.step(action)
        rewards, screens = [], []
        for _ in range(4):
            rewards.append(ale.act(legal[action]))
            screens.append(ale.getScreenRGB())
        pooled = np.maximum(screens[2], screens[3])
        np.testing.assert_array_equal(environment.raw_observation, pooled)
        differ += bool((pooled != screens[3]).any())
        # PIL rounds the sum of the colours.
        newest = timestep.observation[..., 3]
        np.testing.assert_allclose(newest, luminance(pooled), atol=1)
        stack.append(newest)
        assert timestep.reward == sum(rewards)
    # Without a maximum the pictures would be others.
    assert differ > 5
    np.testing.assert_array_equal(
        timestep.observation, np.stack(stack[-4:], axis=-1), strict=True
    )
    assert frame_number(environment) == ale.getEpisodeFrameNumber()


def test_pictures_have_the_size_and_dtype_of_the_paper():
    environment = wrappers.AtariWrapper(adapter())
    assert environment.observation_spec() == specs.Array((84, 84, 4), np.uint8)
    assert environment.observation_spec().name == "grayscale"
    assert environment.action_spec() == specs.DiscreteArray(4, np.int64)
    for timestep in play(environment, 3):
        environment.observation_spec().validate(timestep.observation)
    # Scaling keeps the mean of the screen.
    whole = luminance(environment.raw_observation)
    small = timestep.observation[..., 3]
    np.testing.assert_allclose(small.mean(), whole.mean(), rtol=0.03)


@pytest.mark.slow
def test_lost_lives_end_in_discount_zero_while_the_game_goes_on():
    arguments = {"expose_lives_observation": True, "max_abs_reward": 1.0}
    soft = wrappers.AtariWrapper(
        adapter(), zero_discount_on_life_loss=True, **arguments
    )
    hard = wrappers.AtariWrapper(adapter(), **arguments)
    assert soft.observation_spec()[1].name == "lives"
    steps, others = [soft.reset()], [hard.reset()]
    assert steps[0].observation[1] == 5
    for action in ACTIONS:
        steps.append(soft.step(action))
        others.append(hard.step(action))
        if steps[-1].last():
            break
    lives = [int(step.observation[1]) for step in steps]
    losses = [i for i in range(1, len(lives)) if lives[i] < lives[i - 1]]
    assert [lives[i] for i in losses] == [4, 3, 2, 1, 0]
    assert [i for i, s in enumerate(steps) if s.discount == 0] == losses
    assert all(steps[i].mid() for i in losses[:-1])
    # Without the option only the end of the game has discount 0.
    assert [i for i, s in enumerate(others) if s.discount == 0] == losses[-1:]
    assert steps[-1].last()
    assert others[-1].last()
    after = soft.step(0)
    assert after.first()
    assert after.observation[1] == 5


@pytest.mark.slow
def test_games_begin_with_up_to_so_many_frames_of_no_op():
    plain = wrappers.AtariWrapper(adapter())
    plain.reset()
    environment = wrappers.AtariWrapper(adapter(), noop_max=6, seed=0)
    numbers = set()
    for _ in range(60):
        environment.reset()
        numbers.add(frame_number(environment) - frame_number(plain))
    assert numbers == set(range(7))


def test_games_are_truncated_after_a_number_of_frames():
    environment = wrappers.AtariWrapper(adapter(), max_episode_len=10)
    environment.reset()
    before = frame_number(environment)
    timesteps = [environment.step(1) for _ in range(3)]
    # Frames 4, 8, and 10, where the last step ends early.
    assert [t.last() for t in timesteps] == [False, False, True]
    assert timesteps[-1].discount == 1
    assert frame_number(environment) - before == 10
    assert environment.step(0).first()


SCREEN = specs.Array((2, 2, 3), np.uint8)


def scripted(rewards, discounts=None, lives=None):
    """A game whose screens alternate between red and blue, and get brighter."""
    observations = []
    for i in range(len(rewards) + 1):
        screen = np.zeros((2, 2, 3), np.uint8)
        screen[..., 2 * (i % 2)] = 10 * i
        observations.append((screen, np.float64(lives[i] if lives else 3)))
    return Scripted(
        rewards,
        discounts,
        observations,
        action_spec=[specs.DiscreteArray(3)],
        observation_spec=(SCREEN, specs.Array((), np.float64, "lives")),
    )


def small(inner, **arguments):
    return wrappers.AtariWrapper(
        inner, **{"scale_dims": None, "action_repeats": 2, **arguments}
    )


def test_rewards_are_summed_and_clipped_and_discounts_multiplied():
    inner = scripted([1.0, 2.0, -5.0, 1.0, 0.25], [1.0, 0.5, 0.5, 0.5, 0.0])
    timesteps = play(small(inner, max_abs_reward=2.0), 3, action=2)
    assert [t.reward for t in timesteps] == [None, 2, -2, 0.25]
    assert [t.discount for t in timesteps] == [None, 0.5, 0.25, 0]
    assert inner.actions == [[2]] * 5
    unclipped = play(small(scripted([1.0, 2.0, -5.0, 1.0, 0.25])), 3)
    assert [t.reward for t in unclipped] == [None, 3, -4, 0.25]


def test_colours_are_pooled_one_by_one_and_kept_if_wanted():
    environment = small(scripted([0.0] * 4), grayscaling=False, num_stacked_frames=2)
    assert environment.observation_spec() == specs.Array((2, 2, 3, 2), np.uint8)
    assert environment.observation_spec().name == "RGB"
    _, step = play(environment, 1)
    # Screens 1 (blue, 10) and 2 (red, 20).
    assert step.observation[0, 0, :, 1].tolist() == [20, 0, 10]
    assert step.observation[0, 0, :, 0].tolist() == [0, 0, 0]
    single = play(small(scripted([0.0] * 4), grayscaling=False, pooled_frames=1), 1)
    assert single[-1].observation[0, 0, :, -1].tolist() == [20, 0, 0]


def test_floats_are_between_zero_and_one():
    environment = small(scripted([0.0] * 4), to_float=True, num_stacked_frames=1)
    assert environment.observation_spec() == specs.Array((2, 2, 1), np.float32)
    observation = play(environment, 1)[-1].observation
    np.testing.assert_allclose(
        observation, np.full((2, 2, 1), round(0.299 * 20 + 0.114 * 10) / 255), rtol=1e-6
    )
    assert observation.dtype == np.float32


def test_a_life_lost_within_a_step_counts_for_the_step():
    inner = scripted([0.0] * 6, lives=[3, 2, 2, 2, 2, 2, 1])
    timesteps = play(small(inner, zero_discount_on_life_loss=True), 3)
    assert [t.discount for t in timesteps] == [None, 0, 1, 0]
    assert [t.last() for t in timesteps] == [False, False, False, True]


def test_the_action_may_also_be_no_list():
    inner = scripted([0.0] * 4)
    inner._action_spec = specs.DiscreteArray(3)
    play(small(inner), 1, action=2)
    assert inner.actions == [2, 2]


class DmEnvsOwnSuiteTest(test_utils.EnvironmentTestMixin, absltest.TestCase):
    def make_object_under_test(self):
        return small(
            scripted([0.0, 1.0] * 3, lives=[3, 3, 2, 2, 2, 1, 1]),
            zero_discount_on_life_loss=True,
            expose_lives_observation=True,
            max_abs_reward=1.0,
            max_episode_len=5,
            noop_max=2,
            seed=0,
        )


class DmEnvsOwnSuiteOnTheAdapterTest(
    test_utils.EnvironmentTestMixin, absltest.TestCase
):
    def make_object_under_test(self):
        return adapter()


def test_the_adapter_observes_the_screen_and_the_lives():
    environment = adapter()
    screen, lives = environment.observation_spec()
    assert (screen.shape, screen.dtype) == ((210, 160, 3), np.uint8)
    assert (lives.shape, lives.dtype, lives.name) == ((), np.float64, "lives")
    assert environment.action_spec() == [specs.DiscreteArray(4, np.int64)]
    first = environment.reset()
    assert first.observation[1] == 5
    last = first
    for _ in range(2000):
        if last.last():
            break
        last = environment.step([np.array(1)])
    assert (last.observation[1], last.discount) == (0, 0)
    assert isinstance(last, dm_env.TimeStep)


@pytest.mark.parametrize(
    ("environment", "arguments", "message"),
    [
        (lambda: scripted([0.0]), {"pooled_frames": 5}, "pooled_frames: got 5 with"),
        (lambda: scripted([0.0]), {"max_abs_reward": 0}, r"max_abs_reward: .* got 0"),
        (lambda: Scripted([0.0]), {}, "expected a sequence of the screen"),
        (
            lambda: Scripted([0.0], observation_spec=(SCREEN,)),
            {"zero_discount_on_life_loss": True},
            "without the number of lives",
        ),
        (
            lambda: Scripted(
                [0.0],
                observation_spec=(SCREEN,),
                action_spec=specs.BoundedArray((), np.int32, 1, 2),
            ),
            {},
            "expected one integer that counts from 0",
        ),
        (
            lambda: wrappers.GymAtariAdapter(gymnasium.make("ALE/Pong-v5")),
            {},
            "repeats actions for 4 frames itself",
        ),
    ],
)
def test_what_cannot_be_preprocessed_is_refused(environment, arguments, message):
    with pytest.raises(ValueError, match=message):
        wrappers.AtariWrapper(environment(), **arguments)
