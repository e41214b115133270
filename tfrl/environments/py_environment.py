"""`PyEnvironment`, the base class of environments written in Python.

A subclass implements `observation_spec`, `action_spec`, `_reset` and `_step`. The base
class keeps the current time step and starts the next episode.
"""

from __future__ import annotations

import abc
import difflib
import functools
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any, ClassVar, Self

import gymnasium
import numpy as np
import tree

from tfrl.specs import array_spec
from tfrl.system import log
from tfrl.trajectories import time_step as ts
from tfrl.typing import types
from tfrl.utils import mixins

_LAST = int(ts.StepType.LAST)

# The number of resets by `step`, each after a single step, at which it warns.
_SINGLE_STEPS = 3


class PyEnvironment(mixins.RefusesOverrides, abc.ABC):
    """An environment that takes and returns nests of NumPy arrays.

    `reset` returns a FIRST step; `step` returns MID steps and then a LAST step. The
    LAST step has discount 0 if the episode terminated, and keeps its discount if the
    episode was truncated. A `step` after a LAST step, or before any reset, ignores its
    action and returns the next FIRST step.

    A batched environment (`batched`, `batch_size`) puts the batch in front of every
    array, `[B, ...]`; specs never include it. Its members end their episodes at
    different steps, so its `_step` must start the next episode of each member; the base
    class resets only if all members have ended.
    """

    _refused_overrides: ClassVar[Mapping[str, str]] = {
        "reset": "reset() keeps the current time step; name yours _reset",
        "step": "step() keeps the current time step; name yours _step",
    }

    # This is set on the class, because a subclass may omit `super().__init__()`.
    _handle_auto_reset = True
    _current_time_step: ts.TimeStep | None = None
    _is_seeded = False
    # Whether the current time step was restored, and nobody has asked for it yet.
    _is_restored = False

    # The steps since the last reset, and how many of the first episodes had a single
    # step and were followed by a reset in `step`. No subclass has these mangled names.
    __num_steps = 0
    __num_single_steps = 0

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Makes the method `seed` of a new subclass record its calls."""
        super().__init_subclass__(**kwargs)
        if "seed" in vars(cls):
            cls.seed = _noting(cls.seed)  # type: ignore[method-assign]

    def __init__(self, handle_auto_reset: bool = True):
        """Initialises the base.

        Args:
          handle_auto_reset: Whether `step` resets after a LAST step. It has no effect
            on an environment whose own `_step` resets.
        """
        self._handle_auto_reset = handle_auto_reset

    @property
    def batched(self) -> bool:
        """Whether actions and time steps have a batch dimension in front."""
        return False

    @property
    def batch_size(self) -> int | None:
        """The size of the batch, or None if the environment is not batched.

        Raises:
          RuntimeError: If a subclass is batched but does not define its size.
        """
        if self.batched:
            raise RuntimeError(
                f"{type(self).__name__}.batch_size: the environment is batched, but "
                "does not give its size; override the property batch_size as well."
            )
        return None

    @property
    def is_bandit(self) -> bool:
        """Whether each step is a whole round of a bandit; see `TFEnvironment`."""
        return False

    @abc.abstractmethod
    def observation_spec(self) -> Any:
        """The nest of `ArraySpec`s of the observations, without the batch."""

    @abc.abstractmethod
    def action_spec(self) -> Any:
        """The nest of `ArraySpec`s of the actions, without the batch."""

    def reward_spec(self) -> Any:
        """The nest of `ArraySpec`s of the rewards; one float32 number by default."""
        return array_spec.ArraySpec((), np.float32, name="reward")

    def discount_spec(self) -> Any:
        """The `ArraySpec` of the discount; float32 in [0, 1] by default."""
        return array_spec.BoundedArraySpec((), np.float32, 0.0, 1.0, name="discount")

    def time_step_spec(self) -> ts.TimeStep:
        """The `TimeStep` of specs of the time steps, without the batch.

        An environment whose own specs are tensor specs has array specs here.
        """
        specs = map(array_spec.of_nest, (self.observation_spec(), self.reward_spec()))
        spec = ts.time_step_spec(*specs)
        return spec._replace(discount=self.discount_spec())

    def should_reset(self, current_time_step: ts.TimeStep) -> bool:
        """Whether `step` has to reset instead of applying its action.

        By default, it has to if every member's episode has ended and
        `handle_auto_reset` is set. A bandit has no reset between its rounds, also
        inside of a wrapper.
        """
        if not self._handle_auto_reset:
            return False
        step_type = current_time_step.step_type
        if step_type is ts.StepType.MID:
            return False
        if np.ndim(step_type):
            has_ended = bool((step_type == _LAST).all())
        else:
            has_ended = int(step_type) == _LAST
        return has_ended and self.is_bandit is not True

    def current_time_step(self) -> types.ArrayTimeStep:
        """Returns the time step that the last `reset` or `step` returned.

        Raises:
          ValueError: If the environment was never reset.
        """
        if self._current_time_step is None:
            raise ValueError(
                f"{type(self).__name__}.current_time_step: the environment was not "
                "reset yet, expected a reset before; call reset() first."
            )
        return self._current_time_step

    def reset(self) -> types.ArrayTimeStep:
        """Starts a new episode and returns its FIRST step.

        Subclasses implement `_reset` and do not override this method.
        """
        self.__num_steps = 0
        try:
            self._current_time_step = self._reset()
        except (StopIteration, SystemExit) as error:
            _raise_in_its_place(self, "reset", error)
            raise
        return self._current_time_step

    def step(self, action: Any) -> types.ArrayTimeStep:
        """Applies `action` and returns the next time step.

        Before any reset and after the end of an episode the action is ignored and a new
        episode starts. Subclasses implement `_step` and do not override this method.

        Args:
          action: A nest of arrays like `action_spec()`, `[B, ...]` if batched.
        """
        current = self._current_time_step
        if current is None or self.should_reset(current):
            if self.__num_single_steps < _SINGLE_STEPS and current is not None:
                self._note_episode()
            return self.reset()
        self.__num_steps += 1
        try:
            self._current_time_step = self._step(action)
        except (StopIteration, SystemExit) as error:
            _raise_in_its_place(self, "step", error)
            raise
        return self._current_time_step

    def _copied_time_step(self) -> ts.TimeStep | None:
        """Returns a copy of the current time step; None before the first reset."""
        current = self._current_time_step
        return None if current is None else tree.map_structure(np.array, current)

    def _restore_time_step(self, time_step: Any) -> None:
        """Makes a time step the current one; with None, the next step resets."""
        self._current_time_step = time_step
        self._is_restored = True

    def _note_episode(self) -> None:
        """Warns if each of the first episodes had one step, as those of bandits."""
        if self.__num_steps != 1:
            self.__num_single_steps = _SINGLE_STEPS
            return
        self.__num_single_steps += 1
        if self.__num_single_steps == _SINGLE_STEPS:
            log.warn(
                f"{type(self).__name__}.step: the first {_SINGLE_STEPS} episodes had "
                "one step each, and after an episode step() ignores its action, resets "
                "and gives the reward 0. If each step is a round of a bandit, derive "
                "the class from tfrl.bandits.environments.BanditPyEnvironment, or call "
                "super().__init__(handle_auto_reset=False), TF-Agents' default."
            )

    def seed(self, seed: Any) -> Any:
        """Seeds the environment's random numbers.

        Raises:
          NotImplementedError: If the environment cannot be seeded.
        """
        raise NotImplementedError(_unsupported(self, "seed", "seed(seed)"))

    @property
    def is_seeded(self) -> bool:
        """Whether the environment was given a seed."""
        return self._is_seeded

    def get_info(self) -> Any:
        """Returns information about the last step that is not in the time step.

        Raises:
          NotImplementedError: If the environment gives no such information.
        """
        raise NotImplementedError(_unsupported(self, "get_info", "get_info()"))

    def get_state(self) -> Any:
        """Returns the state of the environment, for `set_state`.

        The environment must not change the returned value afterwards.

        Raises:
          NotImplementedError: If the environment's state cannot be saved.
        """
        raise NotImplementedError(_unsupported(self, "get_state", "get_state()"))

    def set_state(self, state: Any) -> None:
        """Restores a state that `get_state` returned.

        Raises:
          NotImplementedError: If the environment's state cannot be restored.
        """
        raise NotImplementedError(_unsupported(self, "set_state", "set_state(state)"))

    def change(self, name: str, value: Any, calls: bool = False) -> None:
        """Sets an attribute of the environment, such as its difficulty.

        A wrapper looks for the attribute in itself and then in what it wraps, and a
        batch sets it in all members, also in other processes.

        Args:
          name: The attribute's name.
          value: Its value.
          calls: Whether `name` is a method instead, which is called with `value`.

        Raises:
          AttributeError: There is no such attribute or method.
        """
        change_attribute(self, name, value, calls=calls)

    def render(self, mode: str = "rgb_array") -> Any:
        """Returns a picture of the environment, uint8 `[height, width, 3]`.

        Args:
          mode: "rgb_array" for the picture, "human" to show it in a window.

        Raises:
          NotImplementedError: If the environment cannot be rendered.
        """
        raise NotImplementedError(_unsupported(self, "render", "render(mode)"))

    def close(self) -> None:
        """Frees the environment's resources, such as windows and processes."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        exception_type: type[BaseException] | None,
        exception: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    @abc.abstractmethod
    def _reset(self) -> ts.TimeStep:
        """Starts a new episode; see `reset`."""

    @abc.abstractmethod
    def _step(self, action: Any) -> ts.TimeStep:
        """Applies an action; see `step`."""


def check_attribute(target: Any, name: str) -> None:
    """Raises an AttributeError unless an object has an attribute of this name."""
    if not hasattr(target, name):
        near = difflib.get_close_matches(name, dir(target), n=1)
        raise AttributeError(
            f"{name}: expected an attribute or a method of the environment, which is "
            f"a {type(target).__name__}, and it has none of this name; "
            + (f"did you mean {near[0]}?" if near else "define it there.")
        )


def change_attribute(
    target: Any, name: str, value: Any, *, calls: bool = False
) -> None:
    """Sets an attribute that an object has; see `PyEnvironment.change`.

    Raises:
      AttributeError: It has none.
    """
    check_attribute(target, name)
    if calls:
        getattr(target, name)(value)
    else:
        setattr(target, name, value)


def capture_state(environment: PyEnvironment) -> dict[str, Any]:
    """Returns the state of `environment` and its current time step.

    With `restore_state`, the environment continues from there.

    Raises:
      NotImplementedError: If the environment's state cannot be saved.
    """
    return {
        "state": environment.get_state(),
        "time_step": environment._copied_time_step(),
    }


def was_restored(environment: PyEnvironment) -> bool:
    """Whether the current time step was restored since the last call of this."""
    is_new, environment._is_restored = environment._is_restored, False
    return is_new


def restore_state(environment: PyEnvironment, captured: dict[str, Any]) -> None:
    """Restores the state that `capture_state` returned."""
    environment.set_state(captured["state"])
    environment._restore_time_step(captured["time_step"])


def environment_name(environment: Any) -> str:
    """Returns the environment's name for messages: its registered id, or its class.

    It is the class of the environment inside all wrappers; for a batch, of its first
    member.
    """
    name = getattr(getattr(environment, "spec", None), "id", None)
    if isinstance(name, str):
        return name
    # Only a PyEnvironment is unwrapped, because mocks have every attribute.
    while isinstance(environment, PyEnvironment) and hasattr(
        environment, "wrapped_env"
    ):
        environment = environment.wrapped_env()
    for inside in ("gym", "dm_env"):
        if hasattr(type(environment), inside):
            environment = getattr(environment, inside)
    if isinstance(environment, gymnasium.Env | gymnasium.vector.VectorEnv):
        environment = environment.unwrapped
    members = getattr(environment, "envs", None)
    if isinstance(members, list | tuple) and members:
        return f"{type(environment).__name__} of {environment_name(members[0])}"
    return type(environment).__name__


def _raise_in_its_place(
    environment: PyEnvironment, what: str, error: StopIteration | SystemExit
) -> None:
    """Raises an error for an exception that would end a caller silently.

    A StopIteration would end its loop, and a SystemExit the program. An exception that
    the handler of a signal has raised is not changed.

    Raises:
      RuntimeError: The environment has raised the exception.
    """
    from tfrl.system import interrupts

    if interrupts.is_from_handler(error):
        return
    if isinstance(error, StopIteration):
        got = "a StopIteration"
        remedy = (
            "an iterator in it has ended: begin it again (itertools.cycle), or end the "
            "episode before"
        )
    else:
        got = f"a call of sys.exit({error.code!r})"
        remedy = (
            "it would end the whole program: end the episode in its place, or raise an "
            "error (programs with a window often call it when the window is closed)"
        )
    name = environment_name(environment)
    raise RuntimeError(
        f"{what}: got {got} from environment {name}, expected a time step; {remedy}."
    ) from error


def _unsupported(environment: PyEnvironment, method: str, signature: str) -> str:
    return (
        f"{type(environment).__name__}.{method}: this environment does not support it; "
        f"override {signature} in {type(environment).__name__} to add it."
    )


def _noting(seed: Callable[..., Any]) -> Callable[..., Any]:
    """Returns a method `seed` that also records that the environment has a seed."""

    @functools.wraps(seed)
    def seed_and_note(self: PyEnvironment, *args: Any, **kwargs: Any) -> Any:
        result = seed(self, *args, **kwargs)
        self._is_seeded = True
        return result

    return seed_and_note
