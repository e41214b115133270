"""Facts about an environment that explain why no algorithm learns in it.

A copy of the environment is played with chosen actions, several times from the same
seed. So it shows what follows from the actions, and what does not.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import random
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import gymnasium
import numpy as np
import tree

from tfrl.environments import py_environment, time_limits
from tfrl.specs import array_spec

_SEED = 5
_STEPS = 40
# Steps from which the effect of actions is estimated if a seed does not repeat them.
_STEPS_BY_CHANCE = 400
# The most seconds of processor time, and of waiting for environments elsewhere.
_SECONDS, _SECONDS_WAITING = 1.0, 5.0
_MOST_ELEMENTS = 64


class _TooSlowError(Exception):
    """The environment takes too long to play in."""


@dataclasses.dataclass(frozen=True)
class Played:
    """Steps of an environment.

    Attributes:
      observations: The observations, each a list of arrays; one more than actions.
      rewards: The rewards, float64 `[N]`.
      discounts: The discounts, float64 `[N]`.
      step_types: The step types, int `[N + 1]`.
    """

    observations: list[list[np.ndarray]]
    rewards: np.ndarray
    discounts: np.ndarray
    step_types: np.ndarray

    def same_observations(self, other: Played) -> bool:
        """Whether the observations are equal."""
        return all(
            np.array_equal(x, y)
            for mine, others in zip(self.observations, other.observations, strict=True)
            for x, y in zip(mine, others, strict=True)
        )

    def same_ends(self, other: Played) -> bool:
        """Whether the episodes end alike."""
        return np.array_equal(self.step_types, other.step_types) and np.array_equal(
            self.discounts, other.discounts
        )

    def differences(self, other: Played) -> list[str]:
        """Returns what differs: some of "observations", "rewards" and "ends"."""
        found = {
            "observations": self.same_observations(other),
            "rewards": np.array_equal(self.rewards, other.rewards),
            "ends": self.same_ends(other),
        }
        return [name for name, is_same in found.items() if not is_same]

    def pairs(self) -> list[int]:
        """Returns the steps whose two observations belong to one episode."""
        return [i for i, kind in enumerate(self.step_types[1:]) if kind != 0]


def find(
    make: Callable[[], py_environment.PyEnvironment],
    make_evaluation: Callable[[], py_environment.PyEnvironment] | None = None,
) -> dict[str, Any]:
    """Returns facts about an environment by name, and nothing else changes.

    Python's and NumPy's global random generators are as before.

    Args:
      make: Makes an environment of one episode at a time, like the one to train in.
      make_evaluation: The same for evaluation; None if that is no other one.

    Returns:
      `observation_changes`: whether an observation within an episode differs from the
      one before. `observation_correlation`: the largest correlation of an element of
      the observation with itself a step later, for float vectors.
      `actions_matter`: whether anything depends on the actions, and
      `observation_follows_actions`: whether the observation does, if a seed repeats the
      steps. `dead_actions`: the quarters of the range between the actions' bounds,
      "lowest" and "highest", within which all actions do the same.
      `own_bounds_reached`: the share of the bounds of the innermost environment that
      actions reach. `reward_range`: the least and the greatest reward of random
      actions. `time_limit`: see `time_limits.find`. `reward_threshold`: that of the
      registration. `evaluation_differs`: what differs in the environment for
      evaluation, see `Played.differences`. Facts that could not be found are left out;
      all of them if the environment fails, or takes longer than a second of processor
      time or five seconds.
    """
    with _without_traces(), contextlib.ExitStack() as stack:
        try:
            environment = stack.enter_context(contextlib.closing(make()))
            player = _Player(environment, _Deadline())
            facts = player.facts()
            if make_evaluation is not None and player.is_repeatable:
                other = stack.enter_context(contextlib.closing(make_evaluation()))
                facts |= player.compared_with(other)
        except Exception:  # The run itself plays it, and says what is wrong.
            return {}
        return facts


class _Deadline:
    """The time at which playing ends."""

    def __init__(self) -> None:
        self._processor = time.process_time() + _SECONDS
        self._waiting = time.monotonic() + _SECONDS_WAITING

    def check(self) -> None:
        """Raises an error if the time is over."""
        is_over = time.process_time() > self._processor
        if is_over or time.monotonic() > self._waiting:
            raise _TooSlowError


class _Player:
    """Plays an environment until a deadline."""

    def __init__(
        self, environment: py_environment.PyEnvironment, deadline: _Deadline
    ) -> None:
        self._environment = environment
        self._deadline = deadline
        self._spec = environment.action_spec()
        generator = np.random.default_rng(_SEED)
        self._random = self._sampled(generator, _STEPS)
        self._other = self._sampled(generator, _STEPS)
        self._more = self._sampled(generator, _STEPS_BY_CHANCE)
        inner = _innermost(environment)
        self._inner_actions: list[Any] = []
        if inner is not None:
            _record_actions(inner, self._inner_actions)
        self._first, again, self._changed = (
            self._play(actions) for actions in (self._random, self._random, self._other)
        )
        self._inner = inner
        self.is_repeatable = not self._first.differences(again)

    def facts(self) -> dict[str, Any]:
        """Returns the facts of this environment."""
        # The step that begins an episode has no reward.
        rewards = np.concatenate(
            [each.rewards[each.pairs()] for each in (self._first, self._changed)]
        )
        return {
            "observation_changes": self._observation_changes(),
            "reward_range": [float(rewards.min()), float(rewards.max())],
            **self._correlation(),
            **self._effect(),
            **self._dead_actions(),
            **self._own_bounds(),
            **_registration(self._environment),
        }

    def compared_with(self, other: py_environment.PyEnvironment) -> dict[str, Any]:
        """Returns what differs in another environment, if that repeats its steps."""
        if tree.map_structure(repr, other.action_spec()) != tree.map_structure(
            repr, self._spec
        ):
            return {"evaluation_differs": ["actions"]}
        player = _Player(other, self._deadline)
        if not player.is_repeatable:
            return {}
        both = zip(
            (self._first, self._changed), (player._first, player._changed), strict=True
        )
        found = {name for mine, others in both for name in mine.differences(others)}
        return {"evaluation_differs": sorted(found)}

    def _sampled(self, generator: np.random.Generator, count: int) -> list[Any]:
        """Returns random actions, uniform within the bounds."""

        def sample(spec: Any) -> np.ndarray:
            low = np.broadcast_to(np.maximum(spec.minimum, -1e3), spec.shape)
            high = np.broadcast_to(np.minimum(spec.maximum, 1e3), spec.shape)
            draw: Callable[..., Any] = generator.uniform
            if array_spec.is_discrete(spec):
                draw = functools.partial(generator.integers, endpoint=True)
            return np.asarray(draw(low, high), spec.dtype)

        return [tree.map_structure(sample, self._spec) for _ in range(count)]

    def _constant(self, share: float) -> list[Any]:
        """Returns actions at a share of the range between the bounds."""

        def at(spec: Any) -> np.ndarray:
            low = np.broadcast_to(spec.minimum, spec.shape)
            return np.asarray(low + share * (spec.maximum - low), spec.dtype)

        return [tree.map_structure(at, self._spec)] * (_STEPS // 2)

    def _play(self, actions: list[Any]) -> Played:
        """Plays actions from the start, which is that of the same seed."""
        environment = self._environment
        with contextlib.suppress(NotImplementedError):
            environment.seed(_SEED)
        steps = [environment.reset()]
        for action in actions:
            self._deadline.check()
            if environment.batched:
                action = tree.map_structure(lambda x: x[np.newaxis], action)
            steps.append(environment.step(action))

        def numbers(name: str) -> np.ndarray:
            return np.array([np.sum(getattr(step, name)) for step in steps[1:]])

        return Played(
            [[np.array(x) for x in tree.flatten(step.observation)] for step in steps],
            numbers("reward"),
            numbers("discount"),
            np.array([int(np.max(step.step_type)) for step in steps]),
        )

    def _observation_changes(self) -> bool:
        return any(
            not np.array_equal(x, y)
            for played in (self._first, self._changed)
            for i in played.pairs()
            for x, y in zip(*played.observations[i : i + 2], strict=True)
        )

    def _correlation(self) -> dict[str, Any]:
        """Returns `observation_correlation` if the observations are float vectors."""
        before, after = _vectors(self._first, self._changed)
        if before is None or len(before) < _STEPS:
            return {}
        varies = (before.std(0) > 0) & (after.std(0) > 0)
        if not varies.any():
            return {}
        x, y = (_standardized(z[:, varies]) for z in (before, after))
        return {"observation_correlation": float(np.abs((x * y).mean(0)).max())}

    def _effect(self) -> dict[str, Any]:
        """Returns what depends on the actions."""
        if self.is_repeatable:
            different = self._first.differences(self._changed)
            return {
                "actions_matter": bool(different),
                "observation_follows_actions": "observations" in different,
            }
        matter = _seem_to_matter(self._play(self._more), self._more)
        return {} if matter is None else {"actions_matter": matter}

    def _dead_actions(self) -> dict[str, Any]:
        """Returns `dead_actions` if there are any among bounded floats."""
        if not all(
            array_spec.is_continuous(spec)
            and np.isfinite(spec.minimum).all()
            and np.isfinite(spec.maximum).all()
            for spec in tree.flatten(self._spec)
        ):
            return {}
        low, low_quarter, high_quarter, high = (
            self._play(self._constant(share)) for share in (0.0, 0.25, 0.75, 1.0)
        )
        quarters = {"lowest": (low, low_quarter), "highest": (high_quarter, high)}
        dead = [name for name, (x, y) in quarters.items() if not x.differences(y)]
        is_known = self.is_repeatable and low.differences(high)
        return {"dead_actions": dead} if is_known and dead else {}

    def _own_bounds(self) -> dict[str, Any]:
        """Returns `own_bounds_reached` by the actions that were played so far."""
        space = None if self._inner is None else self._inner.action_space
        if not (isinstance(space, gymnasium.spaces.Box) and space.is_bounded()):
            return {}
        taken = np.clip(np.array(self._inner_actions, float), space.low, space.high)
        reached = np.ptp(taken, axis=0) / np.maximum(space.high - space.low, 1e-9)
        return {"own_bounds_reached": float(reached.max())}


@contextlib.contextmanager
def _without_traces() -> Iterator[None]:
    """Restores the global random generators, and shows no warning."""
    states = random.getstate(), np.random.get_state()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        random.setstate(states[0])
        np.random.set_state(states[1])


def _innermost(environment: Any) -> gymnasium.Env | None:
    *_, last = time_limits.layers(environment)
    return last if isinstance(last, gymnasium.Env) else None


def _record_actions(environment: gymnasium.Env, actions: list[Any]) -> None:
    """Appends the actions that an environment takes from now on to a list."""
    plain = environment.step

    def step(action: Any) -> Any:
        actions.append(np.array(action))
        return plain(action)

    environment.step = step  # type: ignore[method-assign]


def _registration(environment: Any) -> dict[str, Any]:
    """Returns the time limit, and the return that solves the environment."""
    facts: dict[str, Any] = {}
    limit = time_limits.find(environment)
    if limit is not None:
        facts["time_limit"] = limit
    for layer in time_limits.layers(environment):
        threshold = getattr(getattr(layer, "spec", None), "reward_threshold", None)
        if threshold is not None:
            facts.setdefault("reward_threshold", float(threshold))
    return facts


def _vectors(*played: Played) -> tuple[Any, Any]:
    """Returns the observations before and after steps, `[N, D]`; None for others."""
    leaves = played[0].observations[0]
    if sum(x.size for x in leaves) > _MOST_ELEMENTS or not all(
        np.issubdtype(x.dtype, np.floating) for x in leaves
    ):
        return None, None
    rows = [
        [
            np.concatenate([np.ravel(x) for x in each.observations[j]])
            for j in (i, i + 1)
        ]
        for each in played
        for i in each.pairs()
    ]
    both = np.array(rows, np.float64)
    return both[:, 0], both[:, 1]


def _standardized(values: np.ndarray) -> np.ndarray:
    return (values - values.mean(0)) / values.std(0)


def _seem_to_matter(played: Played, actions: list[Any]) -> bool | None:
    """Returns whether random actions explain any of what follows; None if unknown.

    Changes of the observation and rewards are fitted by the observation, with and
    without the action. The F statistic of the difference has to be
    within four standard deviations.
    """
    before, after = _vectors(played)
    if before is None:
        return None
    kept = played.pairs()
    flat = np.array(
        [np.concatenate([np.ravel(x) for x in tree.flatten(a)]) for a in actions],
        np.float64,
    )[kept]
    choices = np.unique(flat, axis=0)
    if len(choices) <= 16:
        flat = np.array([(choices == row).all(1) for row in flat], float)[:, 1:]
    targets = np.column_stack([after - before, played.rewards[kept]])
    targets = targets[:, targets.std(0) > 1e-9]
    plain = np.column_stack([np.ones(len(kept)), before])
    full = np.column_stack([plain, flat])
    freedom = len(kept) - full.shape[1]
    if freedom < 50 or not targets.shape[1]:
        return None
    left, left_more = (
        ((targets - x @ np.linalg.lstsq(x, targets, rcond=None)[0]) ** 2).sum(0)
        for x in (plain, full)
    )
    extra = max(flat.shape[1], 1)
    ratio = (left - left_more) / extra / np.maximum(left_more / freedom, 1e-12)
    # Wilson and Hilferty (1931): the level of chi square, which F approaches.
    ninth = 2 / (9 * extra)
    limit = (1 - ninth + 4 * ninth**0.5) ** 3
    return bool((ratio > limit).any())
