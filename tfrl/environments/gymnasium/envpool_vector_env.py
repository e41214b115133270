"""`EnvPoolVectorEnv`: a pool of EnvPool as a Gymnasium vector environment."""

from __future__ import annotations

import functools
import os
import pickle
import subprocess
import warnings
from collections.abc import Mapping
from typing import Any

import gymnasium
import numpy as np
import tree
from gymnasium.envs import registration
from typing_extensions import override

from tfrl.system import child_errors, interpreter

_NUM_SEEDS = 2**31
NO_LIMIT = 2**30  # EnvPool adds to the limit in 32 bits.
# Tasks of these families see nothing of the limit but the end. Elsewhere it may be a
# part of rewards, as in MiniGrid, or of observations.
_LIMIT_IS_UNSEEN = (
    *("atari", "box2d", "classic_control", "toy_text"),
    *("mujoco.dmc", "mujoco.gym"),
)
# Families that EnvPool does not draw. It ends a process that draws MuJoCo without a
# display.
_UNDRAWN = ("gfootball", "mujoco", "toy_text")
_MASK = "legal_action_mask"
# Gymnasium warns of the bounds of EnvPool's own spaces.
quiet = functools.partial(
    warnings.catch_warnings, action="ignore", category=UserWarning
)


class EnvPoolVectorEnv(gymnasium.vector.VectorEnv):
    """Steps all members of a pool in one call, in `AutoresetMode.NEXT_STEP`.

    It differs from EnvPool's own class in four points:

    - Seeds. EnvPool fixes them when a pool is made, so a `reset` with a seed makes
      another pool.
    - Time limits. EnvPool says only that an episode has ended at its limit, not whether
      it has also terminated there. Where tasks see nothing of their limit, the pool
      gets a limit of one step more, and this class truncates, as it does where EnvPool
      ignores a limit.
    - Spaces. float64 becomes float32, pictures `[C, H, W]` become `[H, W, C]`, bounds
      that mean "none" become infinite, and actions of integers `MultiDiscrete`.
    - Masks. A mask of legal actions in the info becomes a part of the observation.
    """

    metadata: dict[str, Any] = {  # noqa: RUF012, because Gymnasium has it so
        "autoreset_mode": gymnasium.vector.AutoresetMode.NEXT_STEP,
        "render_modes": ["rgb_array"],
    }

    def __init__(
        self,
        task: str,
        pool_spec: Any,
        options: Mapping[str, Any],
    ):
        """Reads the spaces; the first `reset` makes the pool itself.

        Args:
          task: EnvPool's name of the task.
          pool_spec: The result of `envpool.make_spec` for the task and the options.
          options: The options of the task.
        """
        with quiet():
            observation_space = pool_spec.observation_space
            action_space = pool_spec.action_space
        num_envs = int(pool_spec.config.num_envs)
        self._options = {"num_envs": num_envs, **options}
        self._limit = min(pool_spec.config.max_episode_steps or NO_LIMIT, NO_LIMIT)
        self._limit_is_unseen = family(task) in _LIMIT_IS_UNSEEN
        if self._limit_is_unseen:
            self._options["max_episode_steps"] = self._limit + 1
        self._task = task
        self._pool: Any = None
        self._at_limit = np.zeros(num_envs, np.bool_)
        self._has_planes = _is_planes(observation_space)
        self._has_mask = f"info:{_MASK}" in pool_spec.state_array_spec
        limit = self._limit if self._limit < NO_LIMIT else None
        self.spec = registration.EnvSpec(task, max_episode_steps=limit)
        self.num_envs = num_envs
        self.render_mode = "rgb_array"
        self.single_observation_space = _as_space(observation_space)
        self.single_action_space = _as_action_space(action_space)
        if self._has_mask:
            self.single_observation_space = gymnasium.spaces.Dict(
                observation=self.single_observation_space,
                action_mask=gymnasium.spaces.MultiBinary(int(action_space.n)),
            )
        self.observation_space, self.action_space = (
            gymnasium.vector.utils.batch_space(space, num_envs)
            for space in (self.single_observation_space, self.single_action_space)
        )
        self._action_bounds = _integer_bounds(self.single_action_space)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Starts a new episode of every member.

        Args:
          seed: Seeds member `i` with the last 31 bits of `seed + i`. None lets the
            members continue their streams of random numbers.
          options: Has no effect.

        Raises:
          RuntimeError: If the environment is closed.
        """
        del options
        self._check_open("reset")
        if seed is not None or self._pool is None:
            self._make_pool(seed)
        self._at_limit[:] = False
        observation, info = self._pool.reset()
        return self._seen(observation, info), info

    def step(
        self, actions: np.ndarray
    ) -> tuple[Any, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        """Steps every member; resets those whose episode has ended.

        Raises:
          RuntimeError: If the environment is closed.
          ValueError: If an integer is not an action; EnvPool would not notice.
        """
        self._check_open("step")
        self._check_bounds(actions)
        if self._at_limit.any():
            result = self._step_past_limit(actions)
        else:
            result = self._pool.step(actions)
        observation, reward, terminated, truncated, info = result
        self._at_limit = info["elapsed_step"] >= self._limit
        if not self._limit_is_unseen:
            self._at_limit &= ~(terminated | truncated)
        observation = self._seen(observation, info)
        return observation, reward, terminated, truncated | self._at_limit, info

    def render(self) -> Any:
        """Returns the members' pictures, uint8 `[B, height, width, 3]`.

        Raises:
          NotImplementedError: For MuJoCo's tasks and others that EnvPool does not draw,
            or for whose pictures its package lacks a file.
          RuntimeError: If the environment is closed.
        """
        self._check_open("render")
        if not draws(self._task):
            raise NotImplementedError(
                f"render: got {self._task}, a task of {family(self._task)}, which "
                "EnvPool does not draw, expected another one; draw the task as it is "
                "in Gymnasium or in dm_control, if it is there."
            )
        try:
            return self._pool.render(env_ids=np.arange(self.num_envs))
        except FileNotFoundError as error:
            raise NotImplementedError(
                f"render: got {self._task}, to draw which EnvPool's package lacks "
                f"{error.filename}, expected another task; nothing else needs the file."
            ) from error

    @override
    def close_extras(self, **kwargs: Any) -> None:
        """Ends the threads of the pool."""
        self._pool = None

    def _make_pool(self, seed: int | None) -> None:
        import envpool

        if seed is None:
            seed = int(np.random.SeedSequence().generate_state(1)[0])
        seeds = [(seed + i) % _NUM_SEEDS for i in range(self.num_envs)]
        # First end the threads of the last pool.
        self._pool = None
        self._pool = envpool.make_gymnasium(
            self._task, seed=seeds, render_mode=self.render_mode, **self._options
        )
        with quiet():
            # Otherwise the pool would make its space in its first step.
            self._pool.observation_space  # noqa: B018

    def _step_past_limit(self, actions: np.ndarray) -> Any:
        """Steps like `step`; members at the limit begin a new episode.

        If tasks see nothing of the limit, the episodes of these members last one step
        more in EnvPool, and then EnvPool resets them. If a life was lost at the limit,
        an episode of the same game begins before that.
        """
        steps, others = [], np.flatnonzero(~self._at_limit)
        if others.size:
            steps.append((others, self._pool.step(actions[others], others)))
        members = np.flatnonzero(self._at_limit)
        if not self._limit_is_unseen:
            observation, info = self._pool.reset(members)
            reward, ended = (np.zeros(members.size, x) for x in (np.float32, np.bool_))
            steps.append((members, (observation, reward, ended, ended, info)))
        while members.size and self._limit_is_unseen:
            result = self._pool.step(actions[members], members)
            begins = result[-1]["elapsed_step"] == 0
            first = tree.map_structure(lambda leaf, rows=begins: leaf[rows], result)
            steps.append((members[begins], first))
            members = members[~begins]
        order = np.argsort(np.concatenate([members for members, _ in steps]))
        return tree.map_structure(
            lambda *leaves: np.concatenate(leaves)[order],
            *[result for _, result in steps],
        )

    def _check_bounds(self, actions: np.ndarray) -> None:
        if self._action_bounds is None:
            return
        low, high = self._action_bounds
        wrong = (actions < low) | (actions > high)
        if wrong.any():
            member = int(np.argwhere(wrong)[0][0])
            raise ValueError(
                f"action: got {actions[member]} for member {member} of {self._task}, "
                f"expected an integer of its space, {self.single_action_space}; take "
                "actions that follow the action spec."
            )

    def _check_open(self, what: str) -> None:
        if self.closed:
            raise RuntimeError(
                f"{what}: got a call after close() of {self._task}, expected an open "
                "environment; load another one."
            )

    def _seen(self, observation: Any, info: Mapping[str, Any]) -> Any:
        """Returns EnvPool's observation as one of the space."""
        if self._has_planes:
            observation = _channels_last(observation)
        if self._has_mask:
            return {"observation": observation, "action_mask": info[_MASK]}
        return observation


def _as_space(space: gymnasium.Space[Any]) -> gymnasium.Space[Any]:
    """Returns the space of observations or actions for users of tfrl."""
    if isinstance(space, gymnasium.spaces.Dict):
        return gymnasium.spaces.Dict(
            {key: _as_space(item) for key, item in space.items()}
        )
    if not isinstance(space, gymnasium.spaces.Box):
        return space
    low, high = space.low, space.high
    if space.dtype is not None and space.dtype.kind == "f":
        limits = np.finfo(space.dtype)
        # If there are no bounds, EnvPool gives the least positive and the greatest
        # number.
        low = np.where(low == limits.tiny, -np.inf, low).astype(np.float32)
        high = np.where(high == limits.max, np.inf, high).astype(np.float32)
        return gymnasium.spaces.Box(low, high, dtype=np.float32)
    if _is_planes(space):
        low, high = np.moveaxis(low, 0, -1), np.moveaxis(high, 0, -1)
    return gymnasium.spaces.Box(low, high, dtype=space.dtype)


def _as_action_space(space: gymnasium.Space[Any]) -> gymnasium.Space[Any]:
    """Returns the space of actions for users of tfrl, in which integers are choices."""
    if isinstance(space, gymnasium.spaces.Box) and space.low.dtype.kind in "iu":
        return gymnasium.spaces.MultiDiscrete(
            space.high - space.low + 1, start=space.low
        )
    return _as_space(space)


def _is_planes(space: gymnasium.Space[Any]) -> bool:
    """Whether observations are pictures `[C, H, W]`, as EnvPool makes most of them."""
    shape = space.shape
    if space.dtype != np.uint8 or shape is None or len(shape) != 3:
        return False
    return shape[0] < shape[-1]


def _channels_last(planes: np.ndarray) -> np.ndarray:
    """Returns pictures `[B, C, H, W]` as `[B, H, W, C]`.

    Four planes at a time are joined to words, because NumPy takes five times as long to
    move single bytes: as long as the emulator takes to make them.
    """
    size, channels, *area = planes.shape
    pictures = np.empty((size, *area, channels), np.uint8)
    if channels % 4:
        for channel in range(channels):
            pictures[..., channel] = planes[:, channel]
        return pictures
    words = pictures.view("<u4")
    for index in range(channels // 4):
        *firsts, last = range(4 * index, 4 * index + 4)
        word = planes[:, last].astype("<u4")
        for channel in reversed(firsts):
            word <<= 8
            word |= planes[:, channel]
        words[..., index] = word
    return pictures


def _integer_bounds(space: gymnasium.Space[Any]) -> tuple[Any, Any] | None:
    """Returns the least and the greatest action; None if they are not integers."""
    if isinstance(space, gymnasium.spaces.Discrete):
        return space.start, space.start + space.n - 1
    if isinstance(space, gymnasium.spaces.MultiDiscrete):
        return space.start, space.start + space.nvec - 1
    return None


def family(task: str) -> str:
    """Returns the module of a task in EnvPool's package, such as "mujoco.gym"."""
    from envpool import registration as envpool_registration

    module, *_ = envpool_registration.registry.specs[task]
    return module.partition(".")[2]


def folder(task: str) -> str:
    """Returns the folder of a task's files in EnvPool's package, such as "mujoco"."""
    return family(task).partition(".")[0]


def draws(task: str) -> bool:
    """Whether EnvPool draws a task."""
    return folder(task) not in _UNDRAWN


_CODE = (
    "from tfrl.environments.gymnasium import envpool_vector_env; "
    "envpool_vector_env.play_and_exit(sys.argv[1])"
)


def try_out(task: str, options: Mapping[str, Any]) -> None:
    """Makes one member of a task in another process, and steps it.

    EnvPool's tasks have about a hundred options, such as the size of a maze, and check
    few of them; bad ones crash a process.

    Args:
      task: EnvPool's name of the task.
      options: The options of the task.

    Raises:
      ValueError: If that process died. An exception in it is ignored.
    """
    pickled = pickle.dumps((task, dict(options))).hex()
    with interpreter.start(_CODE, [pickled], stdin=subprocess.DEVNULL) as process:
        code = process.wait()
    if code:
        raise ValueError(
            f"envpool_kwargs: got {dict(options)} for {task}, with which a process "
            f"{child_errors.describe_exit(code)} when it made the task, expected "
            "options of the task that EnvPool takes; EnvPool's own message, if any, is "
            "on stderr."
        )


def play_and_exit(pickled: str) -> None:
    """Makes and steps a task; bad options end the process, else its status is 0."""
    # The call in the parent's process will raise the same exception.
    try:
        import envpool

        task, options = pickle.loads(bytes.fromhex(pickled))
        pool = envpool.make_gymnasium(task, num_envs=1, seed=[0], **options)
        pool.reset()
        for _ in range(3):
            pool.step(np.asarray(pool.action_space.sample())[np.newaxis])
    finally:
        os._exit(0)
