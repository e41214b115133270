"""`Console`: an Atari game in ale-py's C++ code, on a thread of its own.

ale-py skips frames, takes their maximum and makes the small picture in C++
(`ale_py.vector_env.AtariVectorEnv`), which is faster than the same steps in Python and
leaves Python free. Two things are missing there, and both follow from a game's seed and
its actions, which a `Console` records: a game continues in another process by playing
them again, and a picture in colour is that of a second emulator that plays them, too.
"""

from __future__ import annotations

import array
from typing import Any

import numpy as np

FRAME_SKIP = 4
_NO_LIMIT = 2**30  # ale-py adds to the limit in 32 bits.
_STRENGTHS = [1.0]  # How far a paddle is turned.


class Console:
    """Plays a game: each action lasts for four frames.

    Actions are sent and their results received separately, so that several consoles
    play at the same time.

    Attributes:
      picture: The picture of `AtariPreprocessing`, uint8 `[84, 84]`: the maximum of the
        last two frames.
      lives: The number of lives.
      num_frames: The number of frames since the game began, no-ops included.
    """

    def __init__(self, rom: str, stickiness: float, noop_max: int):
        """Makes the console; `begin` starts its first game.

        Args:
          rom: ale-py's name of the game, such as "space_invaders".
          stickiness: The probability with which the console repeats the last action.
          noop_max: The largest number of frames without an action at the start of a
            game. The number is drawn from 1 to `noop_max`; 0 gives no such frames.
        """
        from ale_py import vector_env

        self._rom, self._stickiness, self._noop_max = rom, stickiness, noop_max
        # Of its own class only `ale` is used, since the checks around it take time.
        self._game: Any = vector_env.AtariVectorEnv(
            rom,
            1,
            max_num_frames_per_episode=_NO_LIMIT,
            repeat_action_probability=stickiness,
            stack_num=1,
            frameskip=FRAME_SKIP,
            # ale-py draws from 0 to one less; see `begin`.
            noop_max=noop_max and noop_max + 1,
            use_fire_reset=False,
            reward_clipping=False,
        ).ale
        self.picture = np.zeros((84, 84), np.uint8)
        self.lives = self.num_frames = 0
        self._is_waiting = False
        # The seed, and what happened since: an action, or minus one and minus the
        # number of no-ops for a new game.
        self._seed: int | None = None
        self._events = array.array("i")
        self._screen: _Screen | None = None

    @property
    def has_begun(self) -> bool:
        """Whether there has been a game."""
        return self._seed is not None

    @property
    def num_events(self) -> int:
        """The number of actions and games since the last seed."""
        return len(self._events)

    def begin(self, seed: int | None = None) -> None:
        """Starts a game.

        Args:
          seed: Seeds the no-ops and the sticky actions, which takes 0.1 s; None lets
            them continue. The first game needs a seed.
        """
        self._discard()
        if seed is not None:
            self._seed = seed
            self._events = array.array("i")
        self._start(-1 if seed is None else seed)
        while self._noop_max and not self.num_frames:
            self._start(-1)

    def send(self, action: int) -> None:
        """Begins to play an action of the game's own actions, by its index."""
        self._discard()
        self._events.append(action)
        self._game.send([action], _STRENGTHS)
        self._is_waiting = True

    def receive(self) -> tuple[int, bool]:
        """Waits for the action's end; returns its reward, and whether the game is over.

        A game that is over needs `begin`.
        """
        observation, reward, is_over, _, info = self._game.recv()
        self._is_waiting = False
        self._read(observation, info)
        return int(reward[0]), bool(is_over[0])

    def get_state(self) -> dict[str, Any]:
        """Returns the seed, what happened since, and the picture."""
        self._discard()
        return {
            "seed": self._seed,
            "events": np.array(self._events, np.int32),
            "picture": self.picture.copy(),
        }

    def set_state(self, state: dict[str, Any]) -> None:
        """Plays what happened since the seed again, about 1 ms for each action.

        Raises:
          ValueError: If this leads to another picture, as in another game.
        """
        self._discard()
        self._seed = int(state["seed"])
        self._events = array.array("i")
        for event in state["events"].tolist():
            if event >= 0:
                self.send(event)
                self.receive()
            else:
                self._start(-1 if self._events else self._seed)
        if not np.array_equal(self.picture, state["picture"]):
            raise ValueError(
                f"state: got another picture of {self._rom} than the saved one after "
                f"{self.num_events} actions, expected the same; restore the state with "
                "the game, the settings and the version of ale-py that saved it."
            )

    def render(self) -> np.ndarray:
        """Returns the console's own picture, uint8 `[height, width, 3]`.

        The first call plays what happened since the seed again; the next calls play
        what happened since the last one.
        """
        assert self._seed is not None, "begin a game first"
        if self._screen is None or self._screen.seed != self._seed:
            self._screen = _Screen(self._rom, self._stickiness, self._seed)
        return self._screen.picture_after(self._events)

    def close(self) -> None:
        """Ends the thread; the console cannot be used afterwards."""
        self._game = self._screen = None

    def _start(self, seed: int) -> None:
        """Starts a game with any number of no-ops; a negative seed is none."""
        observation, info = self._game.reset([0], [seed])
        self._read(observation, info)
        self._events.append(-1 - self.num_frames)

    def _read(self, observation: np.ndarray, info: dict[str, Any]) -> None:
        self.picture = observation[0, 0]
        self.lives = int(info["lives"][0])
        self.num_frames = int(info["episode_frame_number"][0])

    def _discard(self) -> None:
        """Waits for an action whose result was not received, as after an interrupt."""
        if self._is_waiting:
            self.receive()


class _Screen:
    """An emulator that follows a `Console` and shows its picture in colour."""

    def __init__(self, rom: str, stickiness: float, seed: int):
        import ale_py
        from ale_py import roms

        self.seed = seed
        self._num_events = 0
        self._ale = ale_py.ALEInterface()
        self._ale.setFloat("repeat_action_probability", stickiness)
        self._ale.setInt("random_seed", seed)
        path = roms.get_rom_path(rom)
        assert path is not None
        self._ale.loadROM(path)
        self._actions = self._ale.getMinimalActionSet()

    def picture_after(self, events: array.array[int]) -> np.ndarray:
        for event in events[self._num_events :]:
            if event < 0:
                self._ale.reset_game()
                self._play(self._actions[0], -1 - event)
            else:
                self._play(self._actions[event], FRAME_SKIP)
        self._num_events = len(events)
        return self._ale.getScreenRGB()

    def _play(self, action: Any, num_frames: int) -> None:
        for _ in range(num_frames):
            self._ale.act(action)
            if self._ale.game_over():
                return
