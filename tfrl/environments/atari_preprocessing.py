"""`AtariPreprocessing`: the usual preprocessing of the frames of Atari games.

It skips frames, takes the maximum of the last two frames, and makes the result a grey
picture of 84 by 84 pixels: Mnih et al. 2015, "Human-level control through deep
reinforcement learning", and Machado et al. 2018, "Revisiting the Arcade Learning
Environment". Gymnasium's wrapper does the work; this class has TF-Agents' arguments and
defaults, and lets a lost life end the episode but not the game.
"""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np

from tfrl.compilation import internals
from tfrl.utils import number_checks


class AtariPreprocessing(gymnasium.wrappers.AtariPreprocessing):
    """Repeats each action for `frame_skip` frames and shows one small grey picture.

    Observations are uint8 `[screen_size, screen_size, 1]`, the maximum of the last two
    frames. The reward is the sum over the frames. By default there are no random no-ops
    at a reset, because sticky actions already make the games differ (Machado et al.
    2018).

    With `terminal_on_life_loss`, a lost life terminates the episode while the game
    continues: the next `reset` returns the current screen and starts no new game,
    unless it is given a seed or options. `game_over` tells whether the game has ended,
    and `life_lost` whether the last step lost a life in a game that continues.
    """

    def __init__(
        self,
        env: gymnasium.Env,
        frame_skip: int = 4,
        terminal_on_life_loss: bool = False,
        screen_size: int = 84,
        *,
        noop_max: int = 0,
    ):
        """Wraps `env`, an Atari environment that skips no frames itself.

        Args:
          env: The game, such as "PongNoFrameskip-v4", or "ALE/Pong-v5" made with
            frameskip=1.
          frame_skip: The number of frames for which each action is repeated.
          terminal_on_life_loss: Whether losing a life ends the episode.
          screen_size: The height and the width of the picture.
          noop_max: The largest number of frames without an action at the start of a
            game. The number is drawn from 1 to `noop_max`; 0 gives no such frames.

        Raises:
          ValueError: If a number is too small, or `env` skips frames itself, or its
            observations are not pictures.
        """
        number_checks.check_sizes(frame_skip=frame_skip, screen_size=screen_size)
        number_checks.check_integer(
            "noop_max", noop_max, 0, remedy="leave it out for none"
        )
        shape = env.observation_space.shape
        if shape is None or len(shape) not in (2, 3):
            raise ValueError(
                f"env: got the observation space {env.observation_space}, expected "
                "pictures, which AtariPreprocessing makes smaller; load games that "
                "show their memory (ram) with gym_env_wrappers=()."
            )
        skipped = internals.frames_skipped(env)
        if skipped != 1:
            raise ValueError(
                f"env: got a game that repeats actions for {skipped} frames itself, "
                "expected one that does not, because AtariPreprocessing repeats them; "
                "make it with frameskip=1 (gym_kwargs={'frameskip': 1} of a suite's "
                "load), or load its NoFrameskip version."
            )
        super().__init__(
            env,
            noop_max=noop_max,
            frame_skip=frame_skip,
            screen_size=screen_size,
            terminal_on_life_loss=terminal_on_life_loss,
            grayscale_newaxis=True,
        )
        self.life_lost = False
        self._last_info: dict[str, Any] = {}
        # The console's state does not include its screen.
        self._last_screen: Any = None

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Starts a new game, or continues this one if only a life was lost."""
        continues = self.life_lost and seed is None and options is None
        self.life_lost = False
        if not continues:
            self.game_over = False
            return super().reset(seed=seed, options=options)
        self.obs_buffer[0][...] = self._last_screen
        self.obs_buffer[1].fill(0)
        return internals.last_picture(self), self._last_info

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Repeats `action`; stops early if the episode ends."""
        observation, reward, terminated, truncated, info = super().step(action)
        # Gymnasium counts a lost life as the end of the game.
        self.game_over = bool(self.ale.game_over(with_truncation=False))
        self.life_lost = bool(terminated) and not self.game_over and not truncated
        self._last_info = info
        self._last_screen = self.ale.getScreenGrayscale() if self.life_lost else None
        return np.asarray(observation), float(reward), terminated, truncated, info
