"""`AtariWrapper`, the usual preprocessing of the frames of Atari games.

Mnih et al. 2015, "Human-level control through deep reinforcement learning".
`suite_atari` loads Atari games with Gymnasium's preprocessing instead.
"""

from __future__ import annotations

from typing import Any

import dm_env
import numpy as np
import tree
from PIL import Image

from tfrl.acme.wrappers import base, frame_stacking, noop_starts, step_limit
from tfrl.compilation import internals
from tfrl.specs import dm_env_specs
from tfrl.typing import types
from tfrl.utils import number_checks

SCREEN, LIVES = 0, 1


class AtariWrapper(base.EpisodeWrapper):
    """Repeats actions, and observes a stack of small grey pictures.

    A step repeats its action for `action_repeats` frames, and adds a picture to the
    stack. A picture is the maximum of the last `pooled_frames` screens, because some
    games draw objects only in every second frame; it is grey, and scaled bilinearly.
    The reward is the sum over the frames, the discount the product.

    As in Acme, rewards are not clipped, and a lost life has no effect. The published
    agent clips rewards, treats a lost life as the end of an episode in its targets, and
    begins each game with up to 30 no-ops:

    >>> import ale_py, gymnasium
    >>> from tfrl import wrappers
    >>> gymnasium.register_envs(ale_py)
    >>> game = wrappers.AtariWrapper(
    ...     wrappers.GymAtariAdapter(gymnasium.make("BreakoutNoFrameskip-v4")),
    ...     max_abs_reward=1.0,
    ...     zero_discount_on_life_loss=True,
    ...     max_episode_len=108_000,
    ...     noop_max=30,
    ...     seed=1,
    ... )
    >>> game.reset().observation.shape
    (84, 84, 4)
    >>> game.action_spec().num_values
    4
    """

    def __init__(
        self,
        environment: dm_env.Environment,
        *,
        max_abs_reward: float | None = None,
        scale_dims: tuple[int, int] | None = (84, 84),
        action_repeats: int = 4,
        pooled_frames: int = 2,
        zero_discount_on_life_loss: bool = False,
        expose_lives_observation: bool = False,
        num_stacked_frames: int = 4,
        max_episode_len: int | None = None,
        to_float: bool = False,
        grayscaling: bool = True,
        noop_max: int = 0,
        seed: int | None = None,
    ):
        """Wraps `environment`.

        Args:
          environment: A game that does not repeat actions itself, such as
            `GymAtariAdapter(gymnasium.make("PongNoFrameskip-v4"))`. It observes a
            sequence of its screen, uint8 `[H, W, 3]`, and the number of lives, and has
            one action that counts from 0.
          max_abs_reward: Rewards are clipped to this absolute value; None for no
            clipping.
          scale_dims: The height and the width of the pictures; None keeps the screen's
            size.
          action_repeats: The number of frames for which each action is repeated.
          pooled_frames: The number of screens whose maximum is observed.
          zero_discount_on_life_loss: Whether the discount of a step that loses a life
            is 0. The game continues: the step is not LAST.
          expose_lives_observation: Whether the observation is the tuple of the pictures
            and the number of lives.
          num_stacked_frames: The number of pictures in an observation, the newest last.
            At the start of a game, the earlier pictures are black.
          max_episode_len: The number of frames, without no-ops, after which a game is
            truncated; None for no limit.
          to_float: Whether pictures are float32 in [0, 1] rather than uint8.
          grayscaling: Whether pictures are grey, `[H, W, num_stacked_frames]`; in
            colours they are `[H, W, 3, num_stacked_frames]`.
          noop_max: The greatest number of frames without an action at the start of a
            game; see `NoopStartsWrapper`.
          seed: Seeds the numbers of no-ops.

        Raises:
          ValueError: If a number is out of its range, or the environment has no lives
            but an argument needs them, or it repeats actions itself.
        """
        _check_numbers(max_abs_reward, action_repeats, pooled_frames)
        _check_environment(
            environment,
            action_repeats,
            needs_lives=zero_discount_on_life_loss or expose_lives_observation,
        )
        self._action_structure = environment.action_spec()
        if zero_discount_on_life_loss:
            environment = _ZeroDiscountOnLifeLoss(environment)
        if noop_max:
            no_op = self._game_action(0)
            environment = noop_starts.NoopStartsWrapper(
                environment, no_op, noop_max, seed
            )
        super().__init__(step_limit.StepLimitWrapper(environment, max_episode_len))
        self._max_abs_reward = max_abs_reward
        self._scale_dims = scale_dims
        self._action_repeats = action_repeats
        self._pooled_frames = pooled_frames
        self._expose_lives = expose_lives_observation
        self._to_float = to_float
        self._grey = grayscaling
        self._stacker = frame_stacking.FrameStacker(num_stacked_frames)
        self._raw_observation: np.ndarray | None = None

    @property
    def raw_observation(self) -> np.ndarray | None:
        """The pooled screen, `[H, W, 3]`, from which the newest picture was made."""
        return self._raw_observation

    def observation_spec(self) -> Any:
        """The spec of the pictures, or a tuple of it and the spec of the lives."""
        screen, *others = self._environment.observation_spec()
        height, width, channels = screen.shape
        if self._scale_dims is not None:
            height, width = self._scale_dims
        picture = dm_env_specs.Array(
            (height, width) if self._grey else (height, width, channels),
            np.float32 if self._to_float else np.uint8,
            "grayscale" if self._grey else "RGB",
        )
        pictures = self._stacker.update_spec(picture)
        return (pictures, *others) if self._expose_lives else pictures

    def action_spec(self) -> dm_env_specs.DiscreteArray:
        """The spec of the action, an integer."""
        (spec,) = tree.flatten(self._action_structure)
        return dm_env_specs.DiscreteArray(
            int(spec.maximum) + 1, spec.dtype, name=spec.name
        )

    def _reset(self) -> dm_env.TimeStep:
        self._stacker.reset()
        timestep = self._environment.reset()
        return dm_env.restart(self._observe([timestep.observation]))

    def _step(self, action: types.NestedArray) -> dm_env.TimeStep:
        frames: list[dm_env.TimeStep] = []
        while len(frames) < self._action_repeats and not (frames and frames[-1].last()):
            frames.append(self._environment.step(self._game_action(action)))
        reward = sum(frame.reward for frame in frames)
        if self._max_abs_reward is not None:
            reward = np.clip(reward, -self._max_abs_reward, self._max_abs_reward)
        return dm_env.TimeStep(
            step_type=frames[-1].step_type,
            reward=base.cast(reward, self._environment.reward_spec()),
            discount=base.cast(
                np.prod([frame.discount for frame in frames]),
                self._environment.discount_spec(),
            ),
            observation=self._observe([frame.observation for frame in frames]),
        )

    def _game_action(self, action: Any) -> types.NestedArray:
        """Returns the action in the structure that the game takes, such as a list."""
        return tree.unflatten_as(self._action_structure, [np.asarray(action)])

    def _observe(self, observations: list[Any]) -> types.NestedArray:
        screens = [screen for screen, *_ in observations[-self._pooled_frames :]]
        self._raw_observation = np.max(screens, axis=0)
        pictures = self._stacker.step(self._picture(self._raw_observation))
        _, *others = observations[-1]
        return (pictures, *others) if self._expose_lives else pictures

    def _picture(self, screen: np.ndarray) -> np.ndarray:
        image = Image.fromarray(screen)
        if self._grey:
            image = image.convert("L")  # 0.299 red + 0.587 green + 0.114 blue
        if self._scale_dims is not None:
            height, width = self._scale_dims
            image = image.resize((width, height), Image.Resampling.BILINEAR)
        picture = np.asarray(image)
        return picture / np.float32(255) if self._to_float else picture


class _ZeroDiscountOnLifeLoss(base.EpisodeWrapper):
    """Sets the discount to 0 when a life is lost in a game that continues."""

    _lives: float = 0.0

    def _reset(self) -> dm_env.TimeStep:
        timestep = self._environment.reset()
        self._lives = timestep.observation[LIVES]
        return timestep

    def _step(self, action: types.NestedArray) -> dm_env.TimeStep:
        timestep = self._environment.step(action)
        before, self._lives = self._lives, timestep.observation[LIVES]
        if timestep.mid() and self._lives < before:
            return timestep._replace(discount=np.zeros_like(timestep.discount))
        return timestep


def _check_numbers(
    max_abs_reward: float | None, action_repeats: int, pooled_frames: int
) -> None:
    if not 1 <= pooled_frames <= action_repeats:
        raise ValueError(
            f"pooled_frames: got {pooled_frames} with action_repeats "
            f"{action_repeats}, expected 1 to {action_repeats}; only frames of one "
            "step can be pooled."
        )
    number_checks.check_number(
        "max_abs_reward",
        max_abs_reward,
        0,
        excludes_low=True,
        optional=True,
        remedy="pass None to leave rewards as they are",
    )


def _check_environment(
    environment: dm_env.Environment, action_repeats: int, *, needs_lives: bool
) -> None:
    remedy = "wrap a game of ale-py in tfrl.acme.wrappers.GymAtariAdapter"
    specs = environment.observation_spec()
    is_sequence = isinstance(specs, tuple | list)
    if not is_sequence or len(getattr(specs[SCREEN], "shape", ())) != 3:
        raise ValueError(
            f"environment: got observations of {specs}, expected a sequence of the "
            f"screen [height, width, 3] and the number of lives; {remedy}."
        )
    if needs_lives and len(specs) <= LIVES:
        raise ValueError(
            f"environment: got observations of {specs} without the number of lives, "
            f"which zero_discount_on_life_loss and expose_lives_observation need; "
            f"{remedy}."
        )
    actions = tree.flatten(environment.action_spec())
    if len(actions) != 1 or not np.all(getattr(actions[0], "minimum", 1) == 0):
        raise ValueError(
            f"environment: got actions of {environment.action_spec()}, expected one "
            f"integer that counts from 0; {remedy}."
        )
    game = getattr(environment, "gym", None)
    skipped = 1 if game is None else internals.frames_skipped(game)
    if skipped != 1 and action_repeats != 1:
        raise ValueError(
            f"environment: got a game that repeats actions for {skipped} frames "
            "itself, expected one that does not, because AtariWrapper repeats them; "
            "make it with frameskip=1, or pass action_repeats=1 and pooled_frames=1."
        )
