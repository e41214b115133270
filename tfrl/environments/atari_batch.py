"""`AtariBatch`: several Atari games, played at the same time by threads in C++."""

from __future__ import annotations

import dataclasses
import functools
import weakref
from collections.abc import Callable, Sequence
from concurrent import futures
from typing import Any

import numpy as np

from tfrl.environments import atari_console, atari_wrappers, batches
from tfrl.environments.boundary import action_arrays
from tfrl.specs import array_spec
from tfrl.trajectories import time_step as ts

# A new seed takes the time of about 200 actions, and a restored state the time of all
# actions since the last seed.
_ACTIONS_FOR_A_SEED = 10_000
_WORD = np.dtype("<u4")
_STACK_SIZE = atari_wrappers.FrameStack4.STACK_SIZE


@dataclasses.dataclass(frozen=True)
class Rules:
    """When episodes begin and end, and what they reward.

    Attributes:
      max_episode_steps: The number of steps after which a game is truncated.
      max_num_frames: The number of frames after which a game is truncated.
      fire_on_reset: Whether actions 1 and 2 are taken at the start of every episode.
      terminal_on_life_loss: Whether a lost life terminates the episode, while the game
        continues.
      clip_rewards: Whether each reward is replaced by its sign.
    """

    max_episode_steps: int
    max_num_frames: int
    fire_on_reset: bool
    terminal_on_life_loss: bool
    clip_rewards: bool


class AtariBatch(batches.EnvironmentBatch):
    """Games with stacked pictures, uint8 `[B, 84, 84, 4]`, each on its own thread.

    The step after a member's LAST step ignores that member's action and returns its
    FIRST step, while the other members play. A state holds the actions that each game
    has played since its last seed, at most 10,000 and those of one game; `set_state`
    plays them again.
    """

    def __init__(
        self,
        consoles: Sequence[atari_console.Console],
        name: str,
        time_step_spec: ts.TimeStep,
        action_spec: array_spec.BoundedArraySpec,
        discount: float,
        rules: Rules,
    ):
        """Batches `consoles`, which must all have the same game.

        Args:
          consoles: The members' consoles, which are not used elsewhere.
          name: The name of the game, for messages.
          time_step_spec: The specs of one member's time steps.
          action_spec: The spec of one member's actions, which begin at 0.
          discount: The discount of every step but the first and a termination.
          rules: When episodes begin and end, and what they reward.
        """
        super().__init__(handle_auto_reset=False)
        self._members = [_Member(console, rules) for console in consoles]
        self._name = name
        self._batch_size = len(self._members)
        self._time_step_spec = time_step_spec
        self._action_spec = action_spec
        self._check_action = action_arrays.ActionChecker(
            name, action_spec, (self._batch_size,)
        )
        self._discount = discount
        self._clips_rewards = rules.clip_rewards
        self._ended = np.zeros(self._batch_size, np.bool_)
        # The pictures of each member as the bytes of one word, the newest highest.
        self._stacks: np.ndarray = np.zeros((self._batch_size, 84, 84), _WORD)
        # Otherwise ale-py would complain at the end of the program.
        self._end = weakref.finalize(self, _close, list(consoles))
        self.seed(int(np.random.SeedSequence().generate_state(1)[0]))
        self._is_seeded = False

    def seed(self, seed: int) -> int:
        """Seeds member `i` with `seed + i` at the next `reset`. Returns `seed`."""
        for index, member in enumerate(self._members):
            member.seed(int(seed) + index)
        return int(seed)

    def get_info(self) -> dict[str, np.ndarray]:
        """Returns the members' lives and frames since their games began, `[B]` each."""
        consoles = [member.console for member in self._members]
        return {
            "lives": np.array([console.lives for console in consoles]),
            "episode_frame_number": np.array([c.num_frames for c in consoles]),
        }

    def get_state(self) -> dict[str, Any]:
        """Returns the members' seeds and actions, from which their games follow."""
        return {
            "members": [member.get_state() for member in self._members],
            "ended": self._ended.copy(),
            "stacks": self._stacks.copy(),
            "time_step": self._copied_time_step(),
        }

    def set_state(self, state: dict[str, Any]) -> None:
        """Restores a state that `get_state` returned, in this process or another.

        Raises:
          ValueError: If the state is that of other games.
        """
        if not isinstance(state, dict) or len(state["members"]) != self._batch_size:
            raise ValueError(
                "state: got one of other environments, expected that of "
                f"{self._batch_size} games of {self._name} on threads; load as many as "
                "when it was saved, by suite_atari.load_batch(..., emulator='ale-py')."
            )
        _at_once(
            [
                functools.partial(member.set_state, own)
                for member, own in zip(self._members, state["members"], strict=True)
            ]
        )
        self._ended = state["ended"].copy()
        self._stacks = state["stacks"].copy()
        self._restore_time_step(state["time_step"])

    def render(self, mode: str = "rgb_array") -> np.ndarray:
        """Returns the members' pictures, uint8 `[B, height, width, 3]`.

        The first call plays each game again; see `Console.render`.

        Raises:
          NotImplementedError: If `mode` is not "rgb_array".
          ValueError: If this environment was never reset.
        """
        self.current_time_step()
        if mode != "rgb_array":
            raise NotImplementedError(
                f"mode: got {mode!r}, expected 'rgb_array', the only one of "
                f"{self._name} on threads; show the pictures that it returns."
            )
        return np.stack([member.console.render() for member in self._members])

    def close(self) -> None:
        """Ends the threads."""
        self._end()

    def _reset(self) -> ts.TimeStep:
        self._check_open("reset")
        _at_once([member.begin for member in self._members])
        self._ended = np.zeros(self._batch_size, np.bool_)
        observation = self._push_pictures(~self._ended)
        return ts.restart(observation, batch_size=self._batch_size)

    def _step(self, action: Any) -> ts.TimeStep:
        self._check_open("step")
        actions = self._checked(action)
        first = self._ended
        step_type = np.where(first, ts.StepType.FIRST, ts.StepType.MID)
        reward = np.zeros(self._batch_size, np.float32)
        discount = np.where(first, 1.0, self._discount).astype(np.float32)
        playing = np.flatnonzero(~first).tolist()
        for i in playing:
            self._members[i].console.send(actions[i])
        _at_once([self._members[i].begin for i in np.flatnonzero(first).tolist()])
        for i in playing:
            reward[i], is_terminated, is_last = self._members[i].receive()
            if is_last:
                step_type[i] = ts.StepType.LAST
            if is_terminated:
                discount[i] = 0.0
        self._ended = step_type == ts.StepType.LAST
        return ts.TimeStep(
            step_type,
            np.sign(reward) if self._clips_rewards else reward,
            discount,
            self._push_pictures(first),
        )

    def _checked(self, action: Any) -> list[int]:
        """Returns the members' actions.

        Raises:
          ValueError: If one is out of bounds; ale-py would wait for ever.
        """
        (actions,) = self._check_action(action)
        most = int(self._action_spec.maximum)
        wrong = np.flatnonzero((actions < 0) | (actions > most))
        if wrong.size:
            raise ValueError(
                f"action: got {actions[wrong[0]]} for member {wrong[0]} of "
                f"{self._name}, expected an integer from 0 to {most}; take actions "
                "that follow the action spec."
            )
        return actions.tolist()

    def _check_open(self, what: str) -> None:
        if not self._end.alive:
            raise RuntimeError(
                f"{what}: got a call after close() of {self._name}, expected an open "
                "environment; load another one."
            )

    def _push_pictures(self, first: np.ndarray) -> np.ndarray:
        """Adds the newest pictures; those of FIRST steps fill their stacks.

        Returns:
          The observations, uint8 `[B, 84, 84, 4]`, in an array that callers may change.
        """
        pictures = np.stack([member.console.picture for member in self._members])
        self._stacks = self._stacks >> 8
        self._stacks |= np.left_shift(pictures, 24, dtype=_WORD)
        if first.any():
            self._stacks[first] = np.multiply(pictures[first], 0x01010101, dtype=_WORD)
        observations = self._stacks.copy().view(np.uint8)
        return observations.reshape(*pictures.shape, _STACK_SIZE)


class _Member:
    """A game's episodes, of which there are several if lost lives end them."""

    def __init__(self, console: atari_console.Console, rules: Rules):
        self.console = console
        self._rules = rules
        self._num_steps = 0
        self._life_lost = False
        # Each seed of the console follows from this one and the number of those before.
        self._seed = 0
        self._num_seeds = 0

    def seed(self, seed: int) -> None:
        self._seed, self._num_seeds = seed, 0

    def begin(self) -> None:
        """Starts an episode, in a new game unless only a life was lost."""
        self._begin()
        if self._rules.fire_on_reset:
            for action in (1, 2):
                self.console.send(action)
                if any(self._receive()[1:]):
                    self._begin()

    def receive(self) -> tuple[float, bool, bool]:
        """Waits for the action's end.

        Returns:
          The reward, whether the episode has terminated, and whether it has ended.
        """
        reward, is_terminated, is_truncated = self._receive()
        self._num_steps += 1
        is_truncated |= self._num_steps >= self._rules.max_episode_steps
        return reward, is_terminated, is_terminated or is_truncated

    def get_state(self) -> dict[str, Any]:
        return {
            "console": self.console.get_state() if self.console.has_begun else None,
            "num_steps": self._num_steps,
            "life_lost": self._life_lost,
            "seed": self._seed,
            "num_seeds": self._num_seeds,
        }

    def set_state(self, state: dict[str, Any]) -> None:
        if state["console"] is not None:
            self.console.set_state(state["console"])
        self._num_steps, self._life_lost = state["num_steps"], state["life_lost"]
        self._seed, self._num_seeds = state["seed"], state["num_seeds"]

    def _begin(self) -> None:
        continues = (
            self._life_lost
            and self._num_seeds > 0
            and self._num_steps < self._rules.max_episode_steps
        )
        self._life_lost = False
        if continues:
            return
        self._num_steps = 0
        if self._num_seeds and self.console.num_events < _ACTIONS_FOR_A_SEED:
            self.console.begin()
            return
        words = np.random.SeedSequence((self._seed, self._num_seeds)).generate_state(1)
        self._num_seeds += 1
        self.console.begin(int(words[0] >> 1))

    def _receive(self) -> tuple[float, bool, bool]:
        """Waits for the action's end, and does not count it as a step.

        Returns:
          The reward, whether the episode has terminated, and whether the game is at its
          limit of frames.
        """
        lives = self.console.lives
        reward, is_over = self.console.receive()
        loses = self._rules.terminal_on_life_loss and self.console.lives < lives
        is_truncated = self.console.num_frames >= self._rules.max_num_frames
        self._life_lost = loses and not is_over and not is_truncated
        return float(reward), is_over or loses, is_truncated


def _close(consoles: Sequence[atari_console.Console]) -> None:
    for console in consoles:
        console.close()


def _at_once(calls: Sequence[Callable[[], None]]) -> None:
    """Calls functions that wait for C++, several of them on threads."""
    if len(calls) == 1:
        calls[0]()
    elif calls:
        with futures.ThreadPoolExecutor(len(calls)) as threads:
            for result in [threads.submit(call) for call in calls]:
                result.result()
