"""`VectorPyEnvironment` turns a Gymnasium vector environment into a batched one."""

from __future__ import annotations

import contextlib
import copy
import multiprocessing
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Any, cast

import gymnasium
import numpy as np
import tree

from tfrl.environments import (
    batches,
    gymnasium_wrapper,
    process_py_environment,
    py_environment,
    suite_gym,
)
from tfrl.environments.boundary import action_arrays, leaf_checks
from tfrl.environments.gymnasium import (
    autoreset,
    results,
    state_adapters,
    worker_watch,
)
from tfrl.specs import array_spec
from tfrl.specs.gym_spaces import spec_from_gym_space
from tfrl.trajectories import time_step as ts
from tfrl.utils import number_checks

_TRUE = np.True_.tobytes()
_EXPLAINED = (
    AttributeError,
    TypeError,
    ValueError,
    EOFError,
    BrokenPipeError,
    ConnectionResetError,
    KeyboardInterrupt,
)


class VectorPyEnvironment(batches.EnvironmentBatch):
    """A `gymnasium.vector.VectorEnv` as one batched environment, `[B, ...]`.

    Each member has its own step type. The step after a member's LAST step ignores that
    member's action and returns its FIRST step, while the other members step. So a reset
    is a boundary, never a transition. `terminated` becomes a LAST step with discount 0;
    `truncated` alone becomes a LAST step that keeps its discount.

    If a worker of an `AsyncVectorEnv` dies or hangs, the call raises a `ChildError`,
    and only `close` works afterwards. The workers end when this process ends.
    """

    def __init__(
        self,
        vector_env: gymnasium.vector.VectorEnv,
        discount: float = 1.0,
        spec_dtype_map: Mapping[type, Any] | None = None,
        simplify_box_bounds: bool = True,
        drop_first_transitions: bool = False,
        *,
        step_timeout: float | None = 600.0,
    ):
        """Wraps `vector_env`, which must not be used directly from then on.

        Args:
          vector_env: The vector environment. A plain `SyncVectorEnv` may be in any
            autoreset mode; any other environment must be in `AutoresetMode.NEXT_STEP`,
            unless `drop_first_transitions` is True. It must declare another mode in
            `metadata["autoreset_mode"]`.
          discount: The discount of every step but the first and a termination.
          spec_dtype_map: Maps classes of spaces to the dtypes of their specs.
          simplify_box_bounds: Whether equal bounds of a Box become one number.
          drop_first_transitions: Whether to accept other modes, and drop the first
            transition of every episode but the first. These episodes then begin at
            their second observation, without their first reward.

          step_timeout: The number of seconds within which the workers of an
            `AsyncVectorEnv` must answer each call; None for no limit.

        Raises:
          ValueError: If a space has no spec, `discount` is outside [0, 1], the
            autoreset mode is not accepted, or `step_timeout` is not positive.
        """
        super().__init__(handle_auto_reset=False)
        gymnasium_wrapper.check_discount(discount)
        number_checks.check_number(
            "step_timeout",
            step_timeout,
            0.0,
            optional=True,
            remedy="give seconds, or None for no limit",
        )
        self._step_timeout = step_timeout
        self._vector_env = vector_env
        self._batch_size = int(vector_env.num_envs)
        self._observation_spec = spec_from_gym_space(
            vector_env.single_observation_space,
            spec_dtype_map,
            simplify_box_bounds,
            "observation",
        )
        self._action_spec = spec_from_gym_space(
            vector_env.single_action_space,
            spec_dtype_map,
            simplify_box_bounds,
            "action",
        )
        self._time_step_spec = ts.time_step_spec(self._observation_spec)
        # Gymnasium's environments require the dtypes of their spaces.
        self._action_dtypes = [
            np.asarray(leaf).dtype
            for leaf in tree.flatten(vector_env.action_space.sample())
        ]
        self._casts_actions = self._action_dtypes != [
            spec.dtype for spec in tree.flatten(self._action_spec)
        ]
        self._stepper = autoreset.make_stepper(vector_env, drop_first_transitions)
        self._name = py_environment.environment_name(vector_env)
        self._check_action = action_arrays.ActionChecker(
            self._name, self._action_spec, (self._batch_size,)
        )
        self._copy_observation = leaf_checks.NestCopier(
            self._name, "observation", self._observation_spec
        )
        self._mid_step_types = np.full(self._batch_size, ts.StepType.MID)
        self._discounts = np.full(self._batch_size, discount, np.float32)
        self._ended = np.zeros(self._batch_size, np.bool_)
        self._info: dict[str, Any] | None = None
        self._next_seed: int | None = None
        processes = getattr(vector_env.unwrapped, "processes", None)
        self._watch = worker_watch.WorkerWatch(processes) if processes else None
        self._failure: BaseException | None = None

    @property
    def gym(self) -> gymnasium.vector.VectorEnv:
        """The Gymnasium vector environment."""
        return self._vector_env

    @property
    def spec(self) -> Any:
        """Gymnasium's registered spec of the members, or None."""
        return self._vector_env.spec

    def seed(self, seed: int) -> int:
        """Seeds member `i` with `seed + i` at the next `reset`. Returns `seed`.

        A native vector environment draws the numbers of all members from one stream.
        """
        self._next_seed = int(seed)
        return self._next_seed

    def change(self, name: str, value: Any, calls: bool = False) -> None:
        """Sets an attribute in all members; see `PyEnvironment.change`."""
        members: Any = self._vector_env  # One in C++ has no such methods.
        if calls:
            members.call(name, value)
            return
        members.get_attr(name)  # Raises an error if there is none.
        members.set_attr(name, [value] * self._batch_size)

    def get_info(self) -> Any:
        """Returns Gymnasium's latest `infos`; None before the first reset."""
        return self._info

    def get_state(self) -> Any:
        """Returns the state of the members and of their wrappers.

        `state_adapters` lists the classes whose state it knows.

        Raises:
          NotImplementedError: If the state of one of them cannot be read, as in an
            `AsyncVectorEnv`.
        """
        return {
            "gym": state_adapters.get_state(self._vector_env),
            "info": state_adapters.storable(self._info),
            "ended": self._ended.copy(),
            "next_seed": self._next_seed,
            "time_step": self._copied_time_step(),
        }

    def set_state(self, state: Any) -> None:
        """Restores a state that `get_state` returned, in this process or another.

        Raises:
          NotImplementedError: If a class of `state_adapters` is missing.
          ValueError: If the state belongs to other environments.
        """
        if self._info is None:
            # Some environments make their parts in a reset.
            self._reset()
        state_adapters.set_state(self._vector_env, state["gym"])
        self._info = copy.deepcopy(state["info"])
        self._ended = state["ended"].copy()
        self._next_seed = state["next_seed"]
        self._restore_time_step(state["time_step"])

    def render(self, mode: str = "rgb_array") -> Any:
        """Returns the members' pictures, uint8 `[B, height, width, 3]`.

        Raises:
          ValueError: If the members were made for another render mode.
        """
        if mode != self._vector_env.render_mode:
            raise ValueError(
                f"render: got mode {mode!r}, expected the mode for which the members "
                f"were made, {self._vector_env.render_mode!r}; load them with "
                f"gym_kwargs={{'render_mode': {mode!r}}}."
            )
        pictures: Any = self._vector_env.render()
        return None if mode == "human" else np.stack(pictures)

    def close(self) -> None:
        """Closes the members and ends their processes, whatever their state."""
        if self._watch is not None:
            self._watch.stop()
            if self._watch.has_found_death:
                self._failure = self._failure or self._watch.death("close")
        try:
            if self._failure is None:
                self._vector_env.close()
        except (Exception, KeyboardInterrupt) as error:
            # A worker died or failed and no longer answers.
            if self._watch is None:
                raise
            self._failure = error
        if self._watch is not None and self._failure is not None:
            self._watch.end_all()
            self._vector_env.unwrapped.closed = True
        if self._watch is not None:
            self._watch.dismiss_guard()

    def _reset(self) -> ts.TimeStep:
        process_py_environment.check_usable("vector_env", False, self._failure)
        try:
            result = self._call(self._stepper.reset, self._next_seed, self._ended)
            observation, self._info = result
        except _EXPLAINED as error:
            self._explain(error, "reset")
            raise
        # Not before: a reset that fails may be tried again.
        self._next_seed = None
        self._ended = np.zeros(self._batch_size, np.bool_)
        return ts.restart(
            self._copy_observation(observation), batch_size=self._batch_size
        )

    def _step(self, action: Any) -> ts.TimeStep:
        first = self._ended
        process_py_environment.check_usable("vector_env", False, self._failure)
        try:
            actions = self._to_gym_action(action)
            result = self._call(self._stepper.step, actions, first)
            observation, reward, terminated, truncated, self._info = result
        except _EXPLAINED as error:
            self._explain(error, "step")
            raise
        terminated, truncated = results.ends(
            terminated, truncated, first.shape, self._name
        )
        last = np.logical_or(terminated, truncated)
        # Members seldom begin or end, and a search in bytes takes the least time.
        some_begin = _TRUE in first.tobytes()
        if some_begin:
            last &= ~first
        self._ended = last
        step_type, discount = self._mid_step_types.copy(), self._discounts.copy()
        reward = results.as_array(reward, (self._batch_size,), self._name)
        if _TRUE in last.tobytes():
            step_type[last] = ts.StepType.LAST
            discount[last & terminated] = 0.0
        if some_begin:
            step_type[first] = ts.StepType.FIRST
            discount[first] = 1.0
            reward[first] = 0.0
        return ts.TimeStep(
            step_type, reward, discount, self._copy_observation(observation)
        )

    def _call(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Calls `function`, and limits the time of workers, if there are any."""
        if self._watch is None:
            return function(*arguments)
        with self._watch.limited(self._step_timeout):
            return function(*arguments)

    def _to_gym_action(self, action: Any) -> Any:
        flat = self._check_action(action)
        if self._casts_actions:
            flat = [
                array.astype(dtype)
                for array, dtype in zip(flat, self._action_dtypes, strict=True)
            ]
        if isinstance(self._action_spec, array_spec.ArraySpec):
            return flat[0]
        return tree.unflatten_as(self._action_spec, flat)

    def _explain(self, error: BaseException, what: str) -> None:
        """Raises a clearer error for an error of `vector_env`, if there is one.

        Args:
          error: The exception of a call of `reset` or `step`.
          what: "reset" or "step".
        """
        if isinstance(error, AttributeError | TypeError | ValueError):
            explained = results.explain(error, what, self._name)
            if explained is not None:
                raise explained from error
        elif self._watch is not None:
            # Gymnasium may have read some of the answers, so it cannot continue.
            self._failure = error
            if isinstance(error, KeyboardInterrupt):
                return
            death = self._watch.death(what)
            if death is not None:
                self._failure = death
                raise death from error


def load(
    environment_name: str,
    num_envs: int = 1,
    vectorization_mode: str | None = None,
    discount: float = 1.0,
    max_episode_steps: int | None = None,
    gym_env_wrappers: suite_gym.GymEnvWrappers = (),
    spec_dtype_map: Mapping[type, Any] | None = None,
    gym_kwargs: Mapping[str, Any] | None = None,
    render_kwargs: Mapping[str, Any] | None = None,
    vector_kwargs: Mapping[str, Any] | None = None,
    *,
    step_timeout: float | None = 600.0,
) -> VectorPyEnvironment:
    """Makes a batch of a registered environment.

    Args:
      environment_name: See `suite_gym.load`.
      num_envs: The number of members.
      vectorization_mode: "sync" steps the members one after the other; "async" steps
        each in its own process; "vector_entry_point" computes them as one batch, if the
        environment is registered with such a class. None takes "vector_entry_point" if
        there is one, else "sync".
      discount: The discount of every step but the first and a termination.
      max_episode_steps: The number of steps after which an episode is truncated; None
        for the registered limit, 0 for no limit.
      gym_env_wrappers: Applied in turn to each member; not for "vector_entry_point".
      spec_dtype_map: Maps classes of spaces to the dtypes of their specs.
      gym_kwargs: Keyword arguments for the members' constructors.
      render_kwargs: Options of rendering, also passed to the members' constructors.
      vector_kwargs: Keyword arguments for `SyncVectorEnv` or `AsyncVectorEnv`.
      step_timeout: See `VectorPyEnvironment`.

    Raises:
      ValueError: If no environment of that name is registered, there is no such mode,
        `num_envs` is not positive, or `vector_kwargs` has an autoreset mode that
        `VectorPyEnvironment` refuses.
    """
    number_checks.check_sizes(num_envs=num_envs)
    spec = suite_gym.find_spec(environment_name)
    mode = _as_mode(vectorization_mode, spec)
    kwargs = suite_gym.make_kwargs(spec, gym_kwargs, render_kwargs)
    if max_episode_steps is not None:
        kwargs["max_episode_steps"] = max_episode_steps or _no_limit(mode)
    vector_options = dict(vector_kwargs or {})
    if mode == gymnasium.VectorizeMode.ASYNC:
        # A fork would copy TensorFlow's locks without the threads that hold them.
        vector_options.setdefault("context", _clean_start_method())
    with _main_module_hidden(), suite_gym.model_warnings_omitted(spec):
        vector_env = gymnasium.make_vec(
            spec,
            num_envs=num_envs,
            vectorization_mode=mode,
            vector_kwargs=vector_options,
            wrappers=cast(Any, list(gym_env_wrappers)),
            **kwargs,
        )
    try:
        return VectorPyEnvironment(
            vector_env, discount, spec_dtype_map, step_timeout=step_timeout
        )
    except BaseException:
        vector_env.close()
        raise


def _as_mode(name: str | None, spec: Any) -> gymnasium.VectorizeMode:
    if name is None:
        name = "sync" if spec.vector_entry_point is None else "vector_entry_point"
    try:
        return gymnasium.VectorizeMode(name)
    except ValueError:
        modes = " or ".join(repr(mode.value) for mode in gymnasium.VectorizeMode)
        raise ValueError(
            f"vectorization_mode: got {name!r}, expected {modes}; None chooses one."
        ) from None


def _no_limit(mode: gymnasium.VectorizeMode) -> int:
    # Native classes take only a positive number of steps.
    native = mode == gymnasium.VectorizeMode.VECTOR_ENTRY_POINT
    return int(np.iinfo(np.int32).max) if native else -1


def _clean_start_method() -> str:
    methods = multiprocessing.get_all_start_methods()
    return "forkserver" if "forkserver" in methods else "spawn"


@contextlib.contextmanager
def _main_module_hidden() -> Iterator[None]:
    """Keeps new processes from importing the user's script.

    A script without an `if __name__ == "__main__"` would run again in every worker. The
    workers do not need the import: the environments are sent by cloudpickle, which
    includes the definitions of the script.
    """
    main: dict[str, Any] = sys.modules["__main__"].__dict__
    hidden: dict[str, Any] = {
        key: main.pop(key) for key in ("__file__", "__spec__") if key in main
    }
    main["__spec__"] = None
    try:
        yield
    finally:
        main.update(hidden)
