"""Parses the examples' flags, reads their configuration, and reports errors."""

from __future__ import annotations

import contextlib
import pathlib
import re
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import gymnasium
import ml_collections
import tensorflow as tf
from absl import app, flags
from ml_collections import config_flags

from tfrl import replay_service
from tfrl.environments import (
    py_environment,
    suite_gym,
    tf_py_environment,
    vector_py_environment,
    wrappers,
)
from tfrl.savers import checkpointing
from tfrl.specs import tensor_spec
from tfrl.train import finished_runs, run_directory, run_result
from tfrl.utils import number_checks

Config = ml_collections.ConfigDict

# The least values of the settings that are integers.
_MINIMA = {
    "batch_size": 1,
    "checkpoint_interval": 1,
    "collect_episodes_per_iteration": 1,
    "collect_steps_per_iteration": 1,
    "epsilon_decay_iterations": 1,
    "eval_interval": 1,
    "initial_collect_steps": 1,
    "log_interval": 1,
    "n_step_update": 1,
    "num_action_bins": 0,
    "num_envs": 1,
    "num_eval_episodes": 1,
    "num_iterations": 1,
    "replay_capacity": 1,
    "seed": 0,
    "target_update_period": 1,
    "train_steps_per_iteration": 1,
}

_CONFIGS = pathlib.Path(__file__).resolve().parent.parent / "configs"

ENV = flags.DEFINE_string("env", None, "Gymnasium environment, such as CartPole-v1.")
_NUM_ITERATIONS = flags.DEFINE_integer("num_iterations", None, "Length of the run.")
_REPLAY = flags.DEFINE_string(
    "replay", None, "Kind of replay; the configuration file lists the kinds."
)
SEED = flags.DEFINE_integer("seed", None, "Seed of everything random.")
LOGDIR = flags.DEFINE_string(
    "logdir", None, "Folder of the outputs; logs/ALGORITHM_ENVIRONMENT_SEED by default."
)
_OVERWRITE = flags.DEFINE_bool(
    "overwrite", False, "Remove the outputs of an earlier run in --logdir first."
)
_TRACEBACK = flags.DEFINE_bool("traceback", False, "Show the traceback of an error.")


def define_config(name: str) -> Any:
    """Defines `--config`, by default `configs/NAME.py`, and `--config.FIELD=VALUE`."""
    with _unknown_fields_as_errors():
        return config_flags.DEFINE_config_file(
            "config", str(_CONFIGS / f"{name}.py"), "The configuration file."
        )


def read_config(flag: Any, replay: str | None = None) -> Config:
    """Returns the configuration, with the values of the plain flags in its fields.

    Args:
      flag: The flag that `define_config` returned.
      replay: The only kind of replay that the script supports; None if it supports
        several.

    Raises:
      ValueError: `--replay` names another kind than `replay`, or a setting is too
        small.
      TypeError: A setting is not an integer.
    """
    config = flag.value
    for name, plain in (
        ("env", ENV),
        ("num_iterations", _NUM_ITERATIONS),
        ("replay", _REPLAY),
        ("seed", SEED),
    ):
        if plain.value is not None:
            config[name] = plain.value
    if replay is not None:
        if _REPLAY.value not in (None, replay):
            raise ValueError(
                f"replay: got {_REPLAY.value!r}, expected {replay!r} in this script; "
                "leave it out."
            )
        config.replay = replay
    for name, minimum in _MINIMA.items():
        if name in config:
            number_checks.check_integer(
                name,
                config[name],
                minimum,
                remedy=f"set --config.{name}, or edit the configuration file",
            )
    return config


def exit_if_finished(algorithm: str, config: Config) -> None:
    """Says so and exits if the run in the folder is finished; builds nothing."""
    if _OVERWRITE.value or not (_logdir(algorithm, config) / "config.json").exists():
        return
    directory = make_directory(algorithm, config)
    iteration = directory.finished_iteration()
    if iteration is not None:
        print(finished_runs.text(iteration, directory.path), file=sys.stderr)
        print(f"Outputs: {directory.path}")
        sys.exit(0)


def make_directory(
    algorithm: str,
    config: Config,
    may_grow: Sequence[str] = ("num_iterations",),
    **settings: Any,
) -> run_directory.RunDirectory:
    """Returns the folder of this run, by default a separate one for each seed.

    The configuration and the further settings are written to its config.json. The
    fields of `may_grow` may be larger than when the run began.
    """
    fields = {"algorithm": algorithm, **config.to_dict(), **settings}
    if not fields.get("num_action_bins"):
        # The configurations of earlier versions do not have this field.
        fields.pop("num_action_bins", None)
    directory = run_directory.RunDirectory(
        _logdir(algorithm, config),
        fields,
        overwrite=_OVERWRITE.value,
        # A run may resume on another device.
        may_change=["device"],
        may_grow=may_grow,
    )
    # Until the process ends, no other one may train there.
    directory.lock()
    return directory


def _logdir(algorithm: str, config: Config) -> pathlib.Path:
    name = re.sub(r"[^\w.-]", "-", f"{algorithm}_{config.env}_{config.seed}")
    return pathlib.Path(LOGDIR.value or pathlib.Path("logs", name))


def make_environment(
    name: str, num_envs: int, seed: int, num_action_bins: int = 0
) -> tf_py_environment.TFPyEnvironment:
    """Makes one Gymnasium environment, or `num_envs` of them stepped together.

    With `num_action_bins` an action is the number of one of so many evenly spaced
    values of the environment's continuous action.
    """
    environment: py_environment.PyEnvironment
    if num_envs == 1:
        environment = suite_gym.load(name)
    else:
        environment = vector_py_environment.load(name, num_envs)
    if num_action_bins:
        try:
            environment = wrappers.ActionDiscretizeWrapper(environment, num_action_bins)
        except ValueError as error:
            raise ValueError(f"num_action_bins for {name!r}: {error}") from None
    environment.seed(seed)
    return tf_py_environment.TFPyEnvironment(environment)


def check_discrete_actions(name: str, action_spec: Any) -> None:
    """Raises a ValueError if the actions of environment `name` are continuous."""
    specs = tf.nest.flatten(action_spec)
    if any(map(tensor_spec.is_continuous, specs)):
        has_one = len(specs) == 1 and specs[0].shape.num_elements() == 1
        bins = "set --config.num_action_bins=11, for example, or " if has_one else ""
        raise ValueError(
            f"env: got {name!r}, whose actions are continuous, but DQN chooses among "
            f"discrete ones; {bins}train REINFORCE, which takes continuous actions "
            f"too: python -m examples.train_reinforce --env={name}"
        )


def report(result: run_result.RunResult, directory: run_directory.RunDirectory) -> None:
    """Prints how a run ended; exits with status 130 if it was interrupted."""
    if not (result.finished or result.stopped_by):
        sys.exit(130)
    if result.last_return is not None:
        print(
            f"{'Finished' if result.finished else 'Stopped after'} "
            f"{result.iteration:,} iterations, "
            f"{result.iterations_per_second:,.0f} a second. Mean return of the last "
            f"evaluation: {result.last_return:.1f}, of the best: "
            f"{result.best_return:.1f}."
        )
    print(f"Outputs: {directory.path}")


def start(main: Callable[[], None]) -> None:
    """Parses the flags and runs `main`; prints user errors without a traceback."""

    def guarded(arguments: list[str]) -> None:
        try:
            if len(arguments) > 1:
                raise ValueError(
                    f"arguments: got {' '.join(arguments[1:])!r}, expected flags only; "
                    "write --name=value, and see --help."
                )
            main()
        except (
            ArithmeticError,
            LookupError,
            OSError,
            TypeError,
            ValueError,
            RuntimeError,
            checkpointing.CheckpointError,
            gymnasium.error.Error,
            replay_service.ReverbError,
            tf.errors.InvalidArgumentError,
        ) as error:
            if _TRACEBACK.value:
                traceback.print_exc()
            print(f"error: {error}", file=sys.stderr)
            print("(--traceback shows where, --help lists the flags)", file=sys.stderr)
            sys.exit(2)

    with _unknown_fields_as_errors():
        app.run(guarded)


@contextlib.contextmanager
def _unknown_fields_as_errors() -> Iterator[None]:
    """Exits with a message if the configuration lacks the field of a flag."""
    try:
        yield
    except (AttributeError, KeyError) as error:
        if not _is_about_config(error):
            raise
        reason: Any = error
        while isinstance(reason, Exception) and reason.args:
            reason = reason.args[0]
        print(f"error: --config: no field {reason}", file=sys.stderr)
        sys.exit(2)


def _is_about_config(error: BaseException) -> bool:
    """Whether the library of configurations raised an error."""
    frames = traceback.extract_tb(error.__traceback__)
    return "ml_collections" in pathlib.Path(frames[-1].filename).parts
