"""Steps Gymnasium vector environments of every autoreset mode in the same way.

The call after a member's episode has ended resets that member, while the others step:
Gymnasium's `AutoresetMode.NEXT_STEP`. In the other two modes a member that was reset
cannot wait while the others step, so its next action applies to a state that the policy
never saw. A transition must not join a state and an action chosen for another state.
Therefore:

- A plain `SyncVectorEnv` is switched to NEXT_STEP; it reads its mode at every step.
- Any other vector environment, `AsyncVectorEnv` among them, must be in NEXT_STEP.
- On request, an environment in another mode is accepted and the hidden transition is
  dropped: each episode but the first then begins one step late, at its second
  observation, without its first reward.
"""

from __future__ import annotations

import abc
from typing import Any

import gymnasium
import numpy as np
import tree
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv
from typing_extensions import override

# The result of `VectorEnv.step`: observation, reward, terminated, truncated, infos.
VectorStep = tuple[Any, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]


class Stepper(abc.ABC):
    """Steps a vector environment as in `AutoresetMode.NEXT_STEP`."""

    def __init__(self, vector_env: gymnasium.vector.VectorEnv):
        """Makes a stepper.

        Args:
          vector_env: The vector environment to step.
        """
        self._vector_env = vector_env

    def reset(self, seed: int | None, ended: np.ndarray) -> tuple[Any, dict[str, Any]]:
        """Resets every member, member `i` with `seed + i`.

        Args:
          seed: The seed, or None.
          ended: Whether each member's episode has just ended, bool `[B]`.
        """
        del ended
        return self._vector_env.reset(seed=seed)

    @abc.abstractmethod
    def step(self, actions: Any, ended: np.ndarray) -> VectorStep:
        """Steps the members, but resets those whose episode has ended.

        The reward, terminated and truncated of a member that is reset are meaningless.

        Args:
          actions: The members' actions, `[B, ...]`.
          ended: Whether each member's episode has just ended, bool `[B]`.
        """


def make_stepper(
    vector_env: gymnasium.vector.VectorEnv, drop_first_transitions: bool
) -> Stepper:
    """Returns the stepper for the autoreset mode that `vector_env` declares.

    Args:
      vector_env: The vector environment.
      drop_first_transitions: Whether to accept modes other than NEXT_STEP, and drop
        the first transition of each episode but the first.

    Raises:
      ValueError: If the mode is not NEXT_STEP, `vector_env` is not a plain
        `SyncVectorEnv`, and no transition may be dropped.
    """
    mode = autoreset_mode(vector_env)
    if type(vector_env) is SyncVectorEnv:
        vector_env.autoreset_mode = AutoresetMode.NEXT_STEP
        vector_env.metadata["autoreset_mode"] = AutoresetMode.NEXT_STEP
        return _NextStepStepper(vector_env)
    if mode == AutoresetMode.NEXT_STEP:
        return _NextStepStepper(vector_env)
    if drop_first_transitions:
        return _DroppingStepper(vector_env, mode)
    raise ValueError(
        f"vector_env: got {vector_env} with AutoresetMode.{mode.name}, in which a "
        "member that was reset cannot wait while the others step, expected "
        "AutoresetMode.NEXT_STEP; make it with gymnasium.make_vec(..., "
        "vector_kwargs={'autoreset_mode': AutoresetMode.NEXT_STEP}), or pass "
        "drop_first_transitions=True to lose the first transition of every episode, "
        "its reward included."
    )


def autoreset_mode(vector_env: gymnasium.vector.VectorEnv) -> AutoresetMode:
    """Returns the declared mode, or NEXT_STEP, Gymnasium's default.

    Raises:
      ValueError: If the declared value is not an autoreset mode.
    """
    declared = (vector_env.metadata or {}).get(
        "autoreset_mode", AutoresetMode.NEXT_STEP
    )
    try:
        return AutoresetMode(declared)
    except ValueError as error:
        raise ValueError(
            f"vector_env.metadata['autoreset_mode']: got {declared!r} from "
            f"{vector_env}, expected a gymnasium.vector.AutoresetMode; declare the "
            "mode that the environment follows."
        ) from error


class _NextStepStepper(Stepper):
    """Steps an environment that resets a member in the call after its end."""

    _actions: Any = None

    def reset(self, seed: int | None, ended: np.ndarray) -> tuple[Any, dict[str, Any]]:
        inner = self._vector_env.unwrapped
        if isinstance(inner, AsyncVectorEnv) and not inner.shared_memory:
            # An explicit reset does not cancel the autoreset that is pending in such a
            # worker; the worker's next step would reset the environment a second time.
            # A step cancels it.
            while ended.any():
                step = self._vector_env.step(self._actions)
                ended = step[2] | step[3]
        return self._vector_env.reset(seed=seed)

    @override
    def step(self, actions: Any, ended: np.ndarray) -> VectorStep:
        self._actions = actions
        step = self._vector_env.step(actions)
        if "final_obs" in step[4]:
            raise RuntimeError(
                f"infos: got 'final_obs' from {self._vector_env}, which shows that it "
                "resets in the same step, expected no such key in "
                "AutoresetMode.NEXT_STEP; declare the right mode in its "
                "metadata['autoreset_mode']."
            )
        return step


class _DroppingStepper(Stepper):
    """Drops the transition that a member makes before its reset is shown."""

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
        # An episode that ended with its dropped transition is dropped as a whole.
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
