"""Evaluation of a policy without bias towards short episodes."""

from __future__ import annotations

import contextlib
import contextvars
import dataclasses
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from tfrl.compilation import trace_counts
from tfrl.environments import py_environment
from tfrl.environments.boundary import running_steps
from tfrl.eval import value_check
from tfrl.metrics import episode_sums
from tfrl.policies.saving import saved_model
from tfrl.system import interrupts
from tfrl.trajectories import time_step as ts
from tfrl.typing import types
from tfrl.utils import call_sizes, number_checks
from tfrl.utils.random_numbers import seeds

# The limit of a supervised evaluation, for each episode. The longest episodes that are
# usual, in Atari games, have 27,000 steps.
_STEPS_PER_EPISODE = 100_000
_MOST_STEPS = 2**31 - 1


class EvaluationInterruptedError(BaseException):
    """Stops an evaluation. It is not an `Exception`, so user code does not catch it."""


@dataclasses.dataclass(frozen=True)
class Supervision:
    """The limit of an evaluation, and its reports to its caller.

    A run calls a function of the user's to evaluate. The evaluators that this function
    calls find the run's `Supervision` here.

    Attributes:
      max_steps: The largest number of steps of each environment; None leaves the choice
        to the evaluator.
      field: The name of `max_steps` for the user.
      between_calls: A function that is called about twice a second with the numbers of
        finished episodes, of all episodes, and of steps of each environment. It may
        raise an `EvaluationInterruptedError`.
    """

    max_steps: int | None
    field: str
    between_calls: Callable[[int, int, int], None]


_current: contextvars.ContextVar[Supervision | None] = contextvars.ContextVar(
    "supervision", default=None
)


@contextlib.contextmanager
def supervised(supervision: Supervision) -> Iterator[None]:
    """Supervises the evaluations in this context."""
    token = _current.set(supervision)
    try:
        yield
    finally:
        _current.reset(token)


def current_supervision() -> Supervision | None:
    """Returns the supervision of this context, or None."""
    return _current.get()


@dataclasses.dataclass(frozen=True)
class EvaluationResult:
    """The returns and lengths of an evaluation's episodes, ordered by environment.

    Attributes:
      returns: Undiscounted returns, float32 `[num_episodes]`; the numbers of a vector
        reward or of a nest of rewards are summed.
      lengths: Environment steps, int64 `[num_episodes]`.
      num_cut: The number of these episodes that did not end within the limit of steps.
        They count with their returns and lengths up to the limit.
      iteration: The iteration at which a `train.Run` evaluated, 0 for the untrained
        policy; None outside of a run.
      environment_steps: The environment steps of this run so far; None outside of a
        run.
      terminated: Whether each episode ended with a termination (discount 0), bool
        `[num_episodes]`; None if the evaluation did not record it.
      predicted: The discounted returns that the agent's values predicted at the first
        steps, float32 `[num_episodes]`; None without values.
      realized: The actual discounted returns; see `value_check.ValueCheck`. NaN for
        episodes that did not end.
    """

    returns: np.ndarray
    lengths: np.ndarray
    num_cut: int = 0
    iteration: int | None = None
    environment_steps: int | None = None
    terminated: np.ndarray | None = None
    predicted: np.ndarray | None = None
    realized: np.ndarray | None = None

    @property
    def mean(self) -> float:
        """The mean return."""
        return float(np.mean(self.returns, dtype=np.float64))

    @property
    def std(self) -> float:
        """The population standard deviation of the returns."""
        return float(np.std(self.returns, dtype=np.float64))

    @property
    def median(self) -> float:
        """The median return."""
        return float(np.median(self.returns))


class _State(NamedTuple):
    """An evaluation between two calls.

    Attributes:
      step: The number of steps of each environment so far, int32.
      time_step: The current time step, `[B, ...]`.
      policy_state: The current state of the policy.
      sums: Return and length of the running episodes, each `[B]`; with a `ValueCheck`
        its sums, too.
      ended: The number of episodes of each environment that have ended, int32 `[B]`.
      episodes: Returns and lengths of these episodes, whether they terminated, and with
        a `ValueCheck` the predicted and the actual returns, each `[B, max(quota)]`.
    """

    step: tf.Tensor
    time_step: Any
    policy_state: Any
    sums: dict[str, tf.Tensor]
    ended: tf.Tensor
    episodes: dict[str, tf.Tensor]


class Evaluator:
    """Runs a policy for `num_episodes` episodes in a batched environment.

    Every environment of the batch contributes the same number of its first episodes
    (one more or less if the batch does not divide `num_episodes`), however long they
    take. Taking the first `num_episodes` episodes that end, as drivers do, would favour
    short episodes. The loop is one tf.function, traced at the first run. A run calls it
    for about half a second at a time, and Ctrl-C ends the run between two calls.

    The policy is used unchanged: pass a greedy policy for a greedy evaluation. Its
    random choices depend on `seed` alone and are the same in every run. Give the
    evaluator a separate environment: a run resets it at the start and leaves it in the
    middle of an episode. The evaluator does not seed the environment; seed it before
    each run if all runs should start from the same states.
    """

    def __init__(
        self,
        environment: types.TFEnv,
        policy: Any,
        num_episodes: int,
        seed: int | tf.Tensor | None = None,
        *,
        check: value_check.ValueCheck | None = None,
    ) -> None:
        """Creates an evaluator.

        Args:
          environment: A `TFEnvironment`.
          policy: A `TFPolicy`, or a policy that was loaded from a SavedModel.
          num_episodes: The number of episodes in a run.
          seed: The seed of the policy's random choices, an integer or int `[2]`; None
            draws a seed now.
          check: Compares an agent's values with the returns; None leaves it out.

        Raises:
          TypeError: If `environment` is a Python environment.
          ValueError: If `num_episodes` is below 1, or a loaded policy is for other
            observations.
        """
        if isinstance(environment, py_environment.PyEnvironment):
            raise TypeError(
                f"environment: got {type(environment).__name__}, a Python environment, "
                "but Evaluator steps a TFEnvironment; wrap it in "
                "tfrl.environments.TFPyEnvironment."
            )
        number_checks.check_integer(
            "num_episodes", num_episodes, 1, remedy="an evaluation has an episode"
        )
        policy = saved_model.for_environment(policy, environment)
        self._environment = environment
        self._policy = policy
        each, more = divmod(num_episodes, environment.batch_size)
        # The number of episodes that each environment contributes, [B].
        self._quota = each + (np.arange(environment.batch_size) < more)
        if seed is None:
            seed = seeds.next_seed(seeds.make_generator())
        self._seed = seeds.as_seed(seed)
        self._check = check
        self._begin = tf.function(
            trace_counts.of_one_object(self._first_state), autograph=False
        )
        self._evaluate = tf.function(
            trace_counts.of_one_object(self._loop), autograph=False
        )
        self._call_sizes = call_sizes.CallSizes(first=16)

    def run(self, max_steps: int | None = None) -> EvaluationResult:
        """Runs the episodes with the policy's current variables.

        Args:
          max_steps: The largest number of steps of each environment. If the limit is
            reached, there is a warning, the running episodes count with their returns
            so far, and the episodes that have not begun are left out. None sets no
            limit, except that a `train.Run` sets one for its evaluations.

        Raises:
          KeyboardInterrupt: Ctrl-C was pressed.
        """
        supervision = current_supervision()
        field = "max_steps"
        if max_steps is None and supervision is not None:
            field = supervision.field
            max_steps = supervision.max_steps
            if max_steps is None:
                max_steps = _STEPS_PER_EPISODE * int(self._quota.max())
        with interrupts.deferred(running_steps.describe) as is_interrupted:
            with self._environment.reraise():
                state = self._begin()
            while not (self._is_done(state, max_steps) or is_interrupted()):
                state = self._continue(state, max_steps)
                if supervision is not None:
                    finished = np.minimum(state.ended, self._quota).sum()
                    supervision.between_calls(
                        int(finished), int(self._quota.sum()), int(state.step)
                    )
        return self._result(state, field)

    __call__ = run

    def _is_done(self, state: _State, max_steps: int | None) -> bool:
        if max_steps is not None and int(state.step) >= max_steps:
            return True
        return bool(np.all(state.ended >= self._quota))

    def _continue(self, state: _State, max_steps: int | None) -> _State:
        """Steps the environments for about half a second."""
        before = int(state.step)
        size = 0
        if self._evaluate.experimental_get_tracing_count():
            left = (_MOST_STEPS if max_steps is None else max_steps) - before
            size = self._call_sizes.choose(left)
        started = time.monotonic()
        with self._environment.reraise():
            state = self._evaluate(state, self._seed, tf.constant(before + size))
        taken = int(state.step) - before  # Waits for the device.
        if taken:
            self._call_sizes.measured(taken, time.monotonic() - started)
        return state

    def _result(self, state: _State, field: str) -> EvaluationResult:
        """Returns the finished episodes, and the episodes cut by the limit of steps."""
        ended = np.minimum(state.ended, self._quota)
        is_running = ~(state.time_step.is_first() | state.time_step.is_last()).numpy()
        is_cut = (ended < self._quota) & is_running
        found = {name: np.array(x) for name, x in state.episodes.items()}
        for name in ("returns", "lengths"):
            found[name][is_cut, ended[is_cut]] = state.sums[name].numpy()[is_cut]
        if self._check is not None:
            found["realized"][is_cut, ended[is_cut]] = np.nan
        num_cut = int(is_cut.sum())
        if (ended < self._quota).any():
            warnings.warn(
                f"{field}: an evaluation ended at its limit of {int(state.step):,} "
                f"steps of each environment, after {ended.sum()} of "
                f"{self._quota.sum()} episodes. {num_cut} that had not ended count "
                "with their returns so far. End episodes with a TimeLimit, or give "
                f"another {field}.",
                RuntimeWarning,
                stacklevel=3,
            )
        wanted = np.arange(self._quota.max()) < (ended + is_cut)[:, np.newaxis]
        kept = {name: x[wanted] for name, x in found.items()}
        kept["lengths"] = kept["lengths"].astype(np.int64)
        return EvaluationResult(num_cut=num_cut, **kept)

    def _first_state(self) -> _State:
        batch_size, slots = len(self._quota), int(self._quota.max())

        def zeros(dtypes: Mapping[str, Any], *shape: int) -> dict[str, tf.Tensor]:
            return {name: tf.zeros(shape, dtype) for name, dtype in dtypes.items()}

        sums = {"returns": tf.float32, "lengths": tf.int32}
        episodes = {**sums, "terminated": tf.bool}
        if self._check is not None:
            sums |= dict.fromkeys(self._check.names, tf.float32)
            episodes |= {"predicted": tf.float32, "realized": tf.float32}
        return _State(
            tf.zeros([], tf.int32),
            self._environment.reset(),
            self._policy.get_initial_state(batch_size),
            zeros(sums, batch_size),
            tf.zeros([batch_size], tf.int32),
            zeros(episodes, batch_size, slots),
        )

    def _loop(self, state: _State, seed: tf.Tensor, end: tf.Tensor) -> _State:
        """Steps the environments until all episodes have ended, or to step `end`."""
        slots = int(self._quota.max())
        quota = tf.constant(self._quota, tf.int32)

        def body(
            step: tf.Tensor,
            time_step: Any,
            policy_state: Any,
            sums: dict[str, tf.Tensor],
            ended: tf.Tensor,
            episodes: dict[str, tf.Tensor],
        ) -> tuple:
            if self._environment.is_bandit:
                time_step = ts.new_round(time_step)
            action_step = self._policy.action(
                time_step,
                policy_state,
                # A saved policy takes a seed of this dtype.
                seed=tf.cast(
                    tf.random.fold_in(seed, step, alg=seeds.ALGORITHM), tf.int64
                ),
            )
            next_time_step = self._environment.step(action_step.action)
            reward = episode_sums.total_reward(next_time_step.reward, tf.float32)
            increments = {"returns": reward, "lengths": tf.ones_like(ended)}
            # A boundary adds to a sum that has been stored already, and that restarts
            # at the next step.
            checked: dict[str, tf.Tensor] = {}
            realized = None
            if self._check is not None:
                checked, realized = self._check.add(sums, time_step, next_time_step)
            sums = {
                name: each
                + tf.where(time_step.is_first(), tf.zeros_like(each), sums[name])
                for name, each in increments.items()
            } | checked
            ends = next_time_step.is_last() & ~time_step.is_last()
            # The row of an environment that has ended `slots` episodes is all False.
            here = tf.one_hot(ended, slots, on_value=True, off_value=False)
            here = tf.logical_and(here, ends[:, tf.newaxis])
            values = {**sums, "terminated": next_time_step.discount == 0}
            if realized is not None:
                values["realized"] = realized
            episodes = {
                name: tf.where(here, values[name][:, tf.newaxis], stored)
                for name, stored in episodes.items()
            }
            ended += tf.cast(ends, tf.int32)
            return step + 1, next_time_step, action_step.state, sums, ended, episodes

        return _State(
            *tf.while_loop(
                lambda step, _, __, ___, ended, ____: (
                    tf.reduce_any(ended < quota) & (step < end)
                ),
                body,
                tuple(state),
                parallel_iterations=1,
            )
        )
