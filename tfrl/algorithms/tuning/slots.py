"""Trains the runs of tuning in one program, which has a slot for each.

A slot whose run has ended, or was pruned, gets the next run. The program is compiled
once and keeps its size; each run has counters, schedules and random numbers of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tfrl import environments, train

if TYPE_CHECKING:
    from tfrl.algorithms.tuning import tune


class TunedRun(NamedTuple):
    """A run of tuning.

    Attributes:
      name: The name of its folder.
      seed: Its seed.
      values: The values of the fields that tuning searches, by name.
      trial: Optuna's trial; None for a run with the values of an earlier trial.
    """

    name: str
    seed: int
    values: Mapping[str, Any]
    trial: Any = None


# Returns the next run; None if there is none.
NextRun = Callable[[], TunedRun | None]
# Takes a run, the number of its evaluation from 1 on, and the mean return, not finite
# for a run that diverged, or None for one that failed. Returns whether the run goes on.
Report = Callable[[TunedRun, int, float | None], bool]


def find_dynamics(environment: Any, num_action_bins: int) -> Any:
    """Returns the dynamics of an environment in TensorFlow; None for another one.

    Args:
      environment: The name of an environment, `Dynamics`, a `NativeEnvironment`, or
        anything else.
      num_action_bins: The values of a continuous action; 0 leaves it.
    """
    native = environments.native
    if isinstance(environment, str):
        is_native = environment in native.names() or (
            native.bit_flipping.is_task(environment)
        )
        dynamics = native.load(environment).dynamics if is_native else None
    else:
        dynamics = getattr(environment, "dynamics", environment)
    if not isinstance(dynamics, native.Dynamics):
        return None
    if num_action_bins:
        return native.discretize_actions(dynamics, num_action_bins)
    return dynamics


def obstacle(
    kind: Any, settings: Any, environment: Any, searched: Iterable[str]
) -> str | None:
    """Returns why runs cannot be in one program; None if they can.

    Args:
      kind: The algorithm's class.
      settings: The settings that all runs have.
      environment: See `find_dynamics`.
      searched: The names of the fields in which the runs differ.
    """
    others = sorted(set(searched) - kind.Settings.live())
    if others:
        return f"{', '.join(others)} would change the program"
    bins = getattr(settings, "num_action_bins", 0)
    dynamics = find_dynamics(environment, bins)
    if dynamics is None:
        name = environment if isinstance(environment, str) else "the environment"
        return f"{name} is not written in TensorFlow"
    if dynamics.max_episode_steps is None:
        return "the environment has no time limit"
    if not settings.jit_compile:
        return "jit_compile is False"
    return None


class Slots:
    """The slots of one program."""

    def __init__(self, plan: tune.Plan, environment: Any, number: int) -> None:
        """Keeps what makes the runs; the first runs make the program.

        Args:
          plan: What the runs have in common.
          environment: See `find_dynamics`.
          number: The number of slots.
        """
        self._plan, self._number = plan, number
        self._settings = plan.settings_of({})
        bins = getattr(self._settings, "num_action_bins", 0)
        self._dynamics = find_dynamics(environment, bins)
        self._members: train.sweeps.members.Members | None = None

    def run(self, next_run: NextRun, report: Report) -> None:
        """Trains runs until there is no next one.

        Args:
          next_run: See `NextRun`.
          report: See `Report`; called after each evaluation of each run.
        """
        running: dict[int, TunedRun] = {}
        evaluations = dict.fromkeys(range(self._number), 0)
        while True:
            new = {}
            for slot in range(self._number):
                run = None if slot in running else next_run()
                if run is None:
                    continue
                new[slot] = run
                running[slot], evaluations[slot] = run, 0
            if not running:
                return
            members = self._with(new)
            losses, _, returns = members.advance(self._settings.eval_interval)
            for slot, run in sorted(running.items()):
                evaluations[slot] += 1
                value = float(returns[slot] if np.isfinite(losses[slot]) else np.nan)
                if not report(run, evaluations[slot], value):
                    del running[slot]

    def _with(self, new: Mapping[int, TunedRun]) -> train.sweeps.members.Members:
        """Returns the program's members, with new runs in their slots."""
        if self._members is not None:
            if new:
                self._members.replace(
                    {slot: (run.seed, run.values) for slot, run in new.items()}
                )
            return self._members
        # Slots without a run repeat one until there is a run for them.
        runs = [new.get(slot, new[0]) for slot in range(self._number)]
        self._members = train.sweeps.members.Members(
            self._make_loop,
            [run.seed for run in runs],
            {name: [run.values[name] for run in runs] for name in runs[0].values},
            self._settings.num_eval_episodes,
        )
        self._members.start()
        return self._members

    def _make_loop(self, seed: int, **values: float) -> Any:
        """Makes the loop of a run, with variables for the numbers that differ."""
        import tensorflow as tf

        s = self._plan.settings_of(values, seed)
        with train.device_scope(s.device):
            variables = {
                name: tf.Variable(float(values[name]), trainable=False)
                for name in sorted(values)
            }
            environment = environments.native.NativeEnvironment(
                self._dynamics, s.num_envs, seed
            )
        algorithm = self._plan.kind(
            environment,
            settings=s.with_variables(variables),
            environment_name=self._plan.name,
        )
        loop = algorithm.build()
        # A part of the loop holds each variable, or all runs would share it.
        loop.agent.live_settings = list(variables.values())
        return loop
