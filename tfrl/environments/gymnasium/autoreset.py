"""One meaning of time for every Gymnasium vector environment.

Here the call after a member's episode has ended resets that member, while the others
step: Gymnasium's `AutoresetMode.NEXT_STEP`. The other two modes are brought to it, for
a transition must never join a state and an action that was chosen for another one:

- A plain `SyncVectorEnv` is switched to NEXT_STEP; it asks for its mode at every step.
- The workers of a plain `AsyncVectorEnv` keep their mode, but each listens to a pipe of
  its own, so the member that has to wait is sent a reset, or nothing to do.
- Any other vector environment steps all its members or none, so after a reset of one
  (SAME_STEP has done it already, DISABLED has to be asked) its next action applies to a
  state that nobody saw. That hidden transition can only be dropped: the episode then
  begins one step late, at its second observation, without its first reward. Whoever
  wants that says so.
"""

from __future__ import annotations

import abc
from multiprocessing.connection import Connection
from typing import Any, cast

import gymnasium
import numpy as np
import tree
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv

# What the step of a vector environment returns.
VectorStep = tuple[Any, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]


class Stepper(abc.ABC):
    """Steps a vector environment with the meaning of NEXT_STEP."""

    def __init__(self, vector_env: gymnasium.vector.VectorEnv):
        self._vector_env = vector_env

    def reset(self, seed: int | None) -> tuple[Any, dict[str, Any]]:
        """Resets every member, member `i` with `seed + i`."""
        return self._vector_env.reset(seed=seed)

    @abc.abstractmethod
    def step(self, actions: Any, ended: np.ndarray) -> VectorStep:
        """Steps the members, but resets those whose episode has `ended`, bool `[B]`.

        Their entries in reward, terminated and truncated mean nothing.
        """


def make_stepper(
    vector_env: gymnasium.vector.VectorEnv, drop_first_transitions: bool
) -> Stepper:
    """Returns the stepper for the autoreset mode that `vector_env` declares.

    Raises:
      ValueError: If a member cannot be held back and no transition may be dropped.
    """
    mode = autoreset_mode(vector_env)
    if type(vector_env) is SyncVectorEnv:
        vector_env.autoreset_mode = AutoresetMode.NEXT_STEP
        vector_env.metadata["autoreset_mode"] = AutoresetMode.NEXT_STEP
        return _NextStepStepper(vector_env)
    if type(vector_env) is AsyncVectorEnv and vector_env.worker is None:
        vector_env.parent_pipes = [
            cast(
                Connection,
                _ResettingPipe(
                    pipe, mode, clear_autoreset=not vector_env.shared_memory
                ),
            )
            for pipe in vector_env.parent_pipes
        ]
        if mode == AutoresetMode.SAME_STEP:
            return _HeldSameStepStepper(vector_env)
        return _NextStepStepper(vector_env)
    if mode == AutoresetMode.NEXT_STEP:
        return _NextStepStepper(vector_env)
    if drop_first_transitions:
        return _DroppingStepper(vector_env, mode)
    raise ValueError(
        f"vector_env: got {vector_env} with AutoresetMode.{mode.name}, in which a "
        "member that was reset cannot wait while the others step, expected "
        "AutoresetMode.NEXT_STEP; make it with autoreset_mode=AutoresetMode.NEXT_STEP, "
        "or pass drop_first_transitions=True to lose the first transition of every "
        "episode, its reward included."
    )


def autoreset_mode(vector_env: gymnasium.vector.VectorEnv) -> AutoresetMode:
    """Returns the declared mode; like Gymnasium, NEXT_STEP if none is.

    Raises:
      ValueError: If what is declared is no autoreset mode.
    """
    declared = (vector_env.metadata or {}).get(
        "autoreset_mode", AutoresetMode.NEXT_STEP
    )
    try:
        return AutoresetMode(declared)
    except ValueError as error:
        raise ValueError(
            f"vector_env.metadata['autoreset_mode']: got {declared!r} from "
            f"{vector_env}, expected a gymnasium.vector.AutoresetMode; declare the one "
            "that the environment follows."
        ) from error


class _NextStepStepper(Stepper):
    """A vector environment that resets a member in the call after its end."""

    def step(self, actions: Any, ended: np.ndarray) -> VectorStep:
        step = self._vector_env.step(actions)
        if "final_obs" in step[4]:
            raise RuntimeError(
                f"infos: got 'final_obs' from {self._vector_env}, which says that it "
                "resets in the same step, expected none in AutoresetMode.NEXT_STEP; "
                "declare the right mode in its metadata['autoreset_mode']."
            )
        return step


class _HeldSameStepStepper(Stepper):
    """SAME_STEP workers that stay at their reset while the others step."""

    def step(self, actions: Any, ended: np.ndarray) -> VectorStep:
        step = self._vector_env.step(actions)
        return _with_final_observations(step, ~ended & (step[2] | step[3]))


class _DroppingStepper(Stepper):
    """Drops the transition that a member makes before its reset was shown."""

    def __init__(self, vector_env: gymnasium.vector.VectorEnv, mode: AutoresetMode):
        super().__init__(vector_env)
        self._resets_itself = mode == AutoresetMode.SAME_STEP

    def step(self, actions: Any, ended: np.ndarray) -> VectorStep:
        if not self._resets_itself and ended.any():
            self._reset_members(ended)
        step = self._vector_env.step(actions)
        done = step[2] | step[3]
        if self._resets_itself:
            return _with_final_observations(step, done & ~ended)
        # An episode that ended within its hidden transition is not shown at all.
        ended_again = done & ended
        if ended_again.any():
            fresh = self._reset_members(ended_again)
            rows = tree.map_structure(np.array, step[0])
            for row, value in zip(tree.flatten(rows), tree.flatten(fresh), strict=True):
                row[ended_again] = value[ended_again]
            return rows, *step[1:]
        return step

    def _reset_members(self, mask: np.ndarray) -> Any:
        return self._vector_env.reset(options={"reset_mask": mask.copy()})[0]


def _with_final_observations(step: VectorStep, mask: np.ndarray) -> VectorStep:
    """Returns `step` with the final observations of the members in `mask`."""
    if not mask.any():
        return step
    if "final_obs" not in step[4]:
        raise RuntimeError(
            f"infos: got the keys {sorted(step[4])} as an episode ended, expected "
            "'final_obs' among them in AutoresetMode.SAME_STEP; add it, or declare the "
            "right mode in the environment's metadata['autoreset_mode']."
        )
    observation = tree.map_structure(np.array, step[0])
    for member in np.flatnonzero(mask):
        final = tree.flatten(step[4]["final_obs"][member])
        for row, value in zip(tree.flatten(observation), final, strict=True):
            row[member] = value
    return observation, *step[1:]


class _ResettingPipe:
    """A worker's pipe that sends a reset in place of the step after an episode's end.

    To `AsyncVectorEnv` it is the pipe, and the answer looks like that of a step.
    """

    def __init__(self, pipe: Connection, mode: AutoresetMode, clear_autoreset: bool):
        """Wraps `pipe` to a worker in `mode`.

        With `clear_autoreset` a pending NEXT_STEP reset is done before an explicit one:
        workers without shared memory do not forget it by themselves, and would reset a
        second time.
        """
        self._pipe = pipe
        self._mode = mode
        self._clear_autoreset = clear_autoreset
        self._ended = False
        self._sent = ""

    def send(self, message: tuple[str, Any]) -> None:
        command, _ = message
        if command == "reset" and self._ended and self._clear_autoreset:
            self._finish_autoreset()
        if command == "step" and self._ended:
            command = "reset for step"
            if self._mode == AutoresetMode.DISABLED:
                message = ("reset", {"seed": None, "options": None})
            elif self._mode == AutoresetMode.SAME_STEP:
                # It was reset already; this asks for where it stands.
                message = ("reset-noop", None)
            else:
                command = "step"
        self._sent = command
        self._pipe.send(message)

    def recv(self) -> tuple[Any, bool]:
        answer, success = self._pipe.recv()
        if success and self._sent == "step":
            self._ended = bool(answer[2] or answer[3])
        elif self._sent in ("reset", "reset for step"):
            self._ended = False
            if success and self._sent == "reset for step":
                observation, info = answer
                answer = observation, 0.0, False, False, info
        return answer, success

    def poll(self, timeout: float | None = 0.0) -> bool:
        return self._pipe.poll(timeout)

    def close(self) -> None:
        self._pipe.close()

    @property
    def closed(self) -> bool:
        return self._pipe.closed

    def _finish_autoreset(self) -> None:
        if self._mode == AutoresetMode.NEXT_STEP:
            self._pipe.send(("step", None))
            self._pipe.recv()
