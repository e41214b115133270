"""`PyEnvironmentConformance`: the suite for environments written in Python."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import numpy as np
import tree

from tfrl.environments import py_environment
from tfrl.savers import serialization
from tfrl.specs import array_spec
from tfrl.testing.conformance import (
    Conformance,
    check_like_spec,
    check_same,
    copy_nest,
    corners,
    fail,
)
from tfrl.trajectories import time_step as ts

_FIRST, _LAST = int(ts.StepType.FIRST), int(ts.StepType.LAST)


class PyEnvironmentConformance(Conformance):
    """Checks that a `PyEnvironment` behaves as drivers and wrappers expect.

    Implement `make_environment`. Override `sample_action` and `extreme_actions` if some
    actions of the spec are not always allowed.

    Attributes:
      num_steps: The number of random steps that most checks take.
      seed: The seed of the random actions.
      pads_episodes: Whether more LAST steps may follow a LAST step, to pad all episodes
        to one length.
    """

    num_steps: int = 60
    seed: int = 0
    pads_episodes: bool = False

    def make_environment(self) -> py_environment.PyEnvironment:
        """Returns a new environment."""
        raise NotImplementedError(
            f"{type(self).__name__}.make_environment: not written; return a new "
            "environment from it."
        )

    def sample_action(
        self, environment: py_environment.PyEnvironment, rng: np.random.RandomState
    ) -> Any:
        """Returns a random action, `[B, ...]` if the environment is batched."""
        return array_spec.sample_spec_nest(
            array_spec.bounded_actions(environment.action_spec()),
            rng,
            outer_dims=_outer(environment),
        )

    def extreme_actions(self, environment: py_environment.PyEnvironment) -> list[Any]:
        """Returns the lowest and highest action, `[B, ...]`, if there are bounds."""
        return corners(environment.action_spec(), _outer(environment))

    def test_specs_are_nests_of_array_specs(self) -> None:
        """Checks that `observation_spec()` and the like hold only `ArraySpec`s."""
        with self.make_environment() as environment:
            for name in ("observation", "action", "reward", "discount"):
                spec = getattr(environment, f"{name}_spec")()
                for path, leaf in tree.flatten_with_path(spec):
                    if not isinstance(leaf, array_spec.ArraySpec):
                        fail(
                            "/".join((f"{name}_spec()", *map(str, path))),
                            f"a {type(leaf).__name__}",
                            "an ArraySpec",
                            "describe each array by ArraySpec or BoundedArraySpec",
                        )

    def test_a_batched_environment_says_its_batch_size(self) -> None:
        """Checks that `batch_size` is a positive number, or None if not batched."""
        with self.make_environment() as environment:
            size = environment.batch_size
            if environment.batched and not (isinstance(size, int) and size > 0):
                fail(
                    "batch_size",
                    repr(size),
                    "a positive integer, because `batched` is True",
                    "override the property batch_size",
                )
            if not environment.batched and size is not None:
                fail(
                    "batch_size",
                    repr(size),
                    "None, because `batched` is False",
                    "override the property batched to return True",
                )

    def test_reset_starts_an_episode(self) -> None:
        """Checks `reset`, even in mid-episode: FIRST with reward 0 and discount 1."""
        with self.make_environment() as environment:
            rng = np.random.RandomState(self.seed)
            self._check_first(environment, environment.reset(), "reset()")
            environment.step(self.sample_action(environment, rng))
            again = environment.reset()
            self._check_first(environment, again, "reset() in mid-episode")

    def test_a_step_before_any_reset_starts_an_episode(self) -> None:
        """Checks that `step` on a new environment ignores its action and resets."""
        with self.make_environment() as environment:
            rng = np.random.RandomState(self.seed)
            time_step = environment.step(self.sample_action(environment, rng))
            self._check_first(environment, time_step, "step() before any reset")

    def test_time_steps_are_what_the_specs_say(self) -> None:
        """Checks structure, shape, dtype and bounds of every time step."""
        with self.make_environment() as environment:
            spec, outer = environment.time_step_spec(), _outer(environment)
            for step, (_, time_step) in enumerate(self._walk(environment)):
                check_like_spec(
                    time_step,
                    spec,
                    outer,
                    f"time step {step}",
                    "return arrays of the spec's dtype and shape from _reset and "
                    "_step, or correct the spec",
                )

    def test_numbers_are_finite(self) -> None:
        """Checks that nothing is NaN and that rewards are finite."""
        with self.make_environment() as environment:
            for step, (_, time_step) in enumerate(self._walk(environment)):
                for path, leaf in tree.flatten_with_path(time_step):
                    array = np.asarray(leaf)
                    if array.dtype.kind == "f" and np.isnan(array).any():
                        where = "/".join((f"time step {step}", *map(str, path)))
                        fail(where, "NaN", "numbers", "look at _step's arithmetic")
                if not np.all(np.isfinite(tree.flatten(time_step.reward)[0])):
                    fail(
                        f"time step {step}/reward",
                        f"{time_step.reward}",
                        "finite rewards",
                        "clip the reward, or end the episode before it is infinite",
                    )

    def test_steps_follow_in_order(self) -> None:
        """Checks that in each member FIRST follows LAST, and no other step."""
        with self.make_environment() as environment:
            previous = None
            for step, (_, time_step) in enumerate(self._walk(environment)):
                now = np.atleast_1d(time_step.step_type)
                if previous is not None:
                    pads = self.pads_episodes or environment.is_bandit
                    _check_order(previous, now, step, pads)
                previous = now

    def test_current_time_step_is_the_last_one(self) -> None:
        """Checks that `current_time_step()` equals the last returned time step."""
        with self.make_environment() as environment:
            for step, (_, time_step) in enumerate(self._walk(environment)):
                check_same(
                    time_step,
                    environment.current_time_step(),
                    f"current_time_step() after step {step}",
                    "the time step that step() had returned",
                    "leave `current_time_step` and `step` to the base class",
                )

    def test_time_steps_stay_as_they_were_returned(self) -> None:
        """Checks that later steps do not change a time step that was kept."""
        with self.make_environment() as environment:
            kept = [(t, copy_nest(t)) for _, t in self._walk(environment)]
            for step, (time_step, copied) in enumerate(kept):
                check_same(
                    copied,
                    time_step,
                    f"time step {step}, after later steps",
                    "as it was when returned",
                    "return a copy of arrays that the environment writes to",
                )

    def test_actions_are_not_changed(self) -> None:
        """Checks that `step` does not change the arrays of its action."""
        with self.make_environment() as environment:
            rng = np.random.RandomState(self.seed)
            environment.reset()
            for _ in range(10):
                action = self.sample_action(environment, rng)
                copied = copy_nest(action)
                environment.step(action)
                check_same(
                    copied,
                    action,
                    "the action after step()",
                    "as it was passed",
                    "copy the action before changing it",
                )

    def test_the_bounds_of_the_actions_are_actions(self) -> None:
        """Checks that the lowest and the highest action of the spec can be taken."""
        with self.make_environment() as environment:
            for action in self.extreme_actions(environment):
                environment.reset()
                time_step = environment.step(action)
                if (np.asarray(time_step.step_type) == _FIRST).all():
                    fail(
                        "step() after reset()",
                        "a FIRST step",
                        "a MID or LAST one",
                        "reset only in _reset, and after the end of an episode",
                    )

    def test_the_same_seed_gives_the_same_run(self) -> None:
        """Checks that equal seeds give equal runs; skipped if there is no seeding."""
        runs = []
        for _ in range(2):
            with self.make_environment() as environment:
                try:
                    environment.seed(7)
                except NotImplementedError:
                    return
                runs.append([copy_nest(t) for _, t in self._walk(environment)])
        for step, (one, other) in enumerate(zip(*runs, strict=True)):
            check_same(
                one,
                other,
                f"time step {step} of the second run with seed 7",
                "as in the first run",
                "draw every random number from a generator that seed() has seeded",
            )

    def test_a_restored_state_goes_on_as_before(self) -> None:
        """Checks `set_state(get_state())`; skipped if states cannot be saved."""
        with self.make_environment() as environment:
            rng = np.random.RandomState(self.seed)
            environment.reset()
            for _ in range(5):
                environment.step(self.sample_action(environment, rng))
            try:
                captured = py_environment.capture_state(environment)
            except NotImplementedError:
                return
            state = _as_in_a_checkpoint(captured)
            actions = [self.sample_action(environment, rng) for _ in range(20)]
            once = [copy_nest(environment.step(action)) for action in actions]
            py_environment.restore_state(environment, state)
            twice = [copy_nest(environment.step(action)) for action in actions]
            for step, (one, other) in enumerate(zip(once, twice, strict=True)):
                check_same(
                    one,
                    other,
                    f"step {step} after set_state()",
                    "as after get_state()",
                    "return a copy of everything that _step depends on from get_state",
                )

    def test_it_can_be_closed_twice(self) -> None:
        """Checks that `close()` on a closed environment does nothing."""
        environment = self.make_environment()
        environment.reset()
        environment.close()
        environment.close()

    def test_it_runs_in_a_graph(self) -> None:
        """Checks that `TFPyEnvironment` can step the environment in a `tf.function`."""
        import tensorflow as tf

        from tfrl.environments import tf_py_environment

        environment = self.make_environment()
        rng = np.random.RandomState(self.seed)
        action = self.sample_action(environment, rng)
        if not environment.batched:
            action = tree.map_structure(lambda leaf: np.asarray(leaf)[None], action)
        tf_environment = tf_py_environment.TFPyEnvironment(environment)
        with contextlib.closing(tf_environment):

            @tf.function(autograph=False)
            def step(action: Any) -> Any:
                tf_environment.current_time_step()
                return tf_environment.step(action)

            with tf_environment.reraise():
                time_step = step(tree.map_structure(tf.constant, action))
            check_like_spec(
                tree.map_structure(lambda tensor: tensor.numpy(), time_step),
                tf_environment.time_step_spec(),
                (tf_environment.batch_size,),
                "the time step in a graph",
                "return arrays as the specs say",
            )

    def _walk(
        self, environment: py_environment.PyEnvironment
    ) -> Iterator[tuple[Any, ts.TimeStep]]:
        """Resets, then takes random actions; yields each action and its time step."""
        rng = np.random.RandomState(self.seed)
        yield None, environment.reset()
        for _ in range(self.num_steps):
            action = self.sample_action(environment, rng)
            yield action, environment.step(action)

    def _check_first(
        self,
        environment: py_environment.PyEnvironment,
        time_step: ts.TimeStep,
        where: str,
    ) -> None:
        outer = _outer(environment)
        wanted = ts.TimeStep(
            np.full(outer, _FIRST, np.int32),
            tree.map_structure(
                lambda spec: np.zeros((*outer, *spec.shape), spec.dtype),
                environment.reward_spec(),
            ),
            np.ones(outer, np.float32),
            (),
        )
        check_same(
            wanted,
            time_step._replace(observation=()),
            where,
            "as at the start of every episode",
            "return time_step.restart(observation) from _reset",
        )


def _check_order(
    previous: np.ndarray, now: np.ndarray, step: int, may_stay_last: bool
) -> None:
    for member, (before, after) in enumerate(zip(previous, now, strict=True)):
        where = f"step_type of member {member} at step {step}"
        if before == after == _LAST and may_stay_last:
            continue
        if before == _LAST and after != _FIRST:
            fail(
                where,
                f"{after}",
                f"FIRST ({_FIRST}), because the step before was LAST",
                "start the next episode in the step after LAST, ignoring the "
                "action: leave handle_auto_reset on, or reset in _step; a bandit "
                "returns True as is_bandit",
            )
        if before != _LAST and after == _FIRST:
            fail(
                where,
                f"FIRST ({_FIRST})",
                "MID or LAST, because the step before was not LAST",
                "end the episode by a LAST step (termination or truncation) "
                "before the next begins",
            )


def _outer(environment: py_environment.PyEnvironment) -> tuple[int, ...]:
    if not environment.batched:
        return ()
    size = environment.batch_size
    return () if size is None else (size,)


def _as_in_a_checkpoint(captured: Any) -> Any:
    """Returns a captured state as it comes back from a checkpoint."""
    try:
        return serialization.from_bytes(serialization.to_bytes(captured))
    except serialization.UnsupportedValueError as error:
        fail(
            f"get_state(){serialization.path_text(error.path[1:])}",
            f"a {error.kind.__qualname__}",
            "an array, a number, a string, bytes, None, or a nest of these",
            "return only values that a checkpoint can hold",
        )
