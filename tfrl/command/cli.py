"""Parses flags, reads configurations, and runs the main function of a command.

TensorFlow is imported when a command first uses it: neither `--help` nor an error in a
flag waits for it.
"""

from __future__ import annotations

import contextlib
import difflib
import itertools
import os
import pathlib
import re
import runpy
import sys
import traceback
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NoReturn, TypeAlias

from absl import app, flags
from absl import logging as absl_logging
from ml_collections import config_flags

import tfrl
from tfrl.algorithms import (
    distributed,
    presets,
    registry,
    run_folders,
    spaces,
)
from tfrl.algorithms.algorithm import least_iterations
from tfrl.algorithms.settings import COUNT
from tfrl.command import errors, flag_help, interrupts, threads
from tfrl.environments import suites
from tfrl.system import interrupts as stop_signals
from tfrl.system import quiet
from tfrl.train.runs import finished_runs, run_length, stopped_runs

# An `ml_collections.ConfigDict`.
Config: TypeAlias = Any

# The fields that have their own flags.
_PLAIN = ("env", "num_environment_steps", "num_iterations", "replay", "seed")


# The default of `--config`, if the command has that flag.
_FILES: list[str] = []
# The algorithm of a configuration that names none, as files of earlier versions do.
_NAMES: list[str] = []
_DEFAULTS = pathlib.Path(registry.__file__).with_name("config_file.py")
_IS_CONFIG = re.compile("--?config=").match
_HELP = {"--help", "-help", "-h", "-?", "--helpshort", "-helpshort"}
_SILENT = _HELP | {"--quiet", "-quiet"}


def define_flags() -> None:
    """Defines the flags that all commands have."""
    flags.DEFINE_string("env", None, "Gymnasium environment, such as CartPole-v1.")
    flags.DEFINE_integer("seed", None, "Seed of everything random.")
    flags.DEFINE_string("logdir", None, "Folder of the run, by default in logs.")
    flags.DEFINE_bool("traceback", False, "Show the traceback of an error.")


def define_config(name: str, folder: str | None = None) -> Any:
    """Defines `--config`, `--config.FIELD=VALUE`, and the flags that go with them.

    Args:
      name: The algorithm whose settings are the default, for the environment that
        `--env` gives; `--config.agent` may name another one.
      folder: If given, FOLDERname.py has the default settings of an algorithm; the
        beginning of these paths.
    """
    sys.argv = _with_rows(sys.argv)
    given = _given("config", sys.argv)
    if given is not None and not os.path.exists(given.partition(":")[0]):
        errors.exit_with(_text_of_missing_file(given))
    if folder is None:
        path = _default_settings(name)
        _NAMES[:] = [name.removesuffix("+")]
    else:
        agent = _given("config.agent", sys.argv)
        found = agent is not None and os.path.exists(f"{folder}{agent}.py")
        path = f"{folder}{agent if found else name}.py"
    define_flags()
    flags.DEFINE_string("preset", None, "Row of settings; see tfrl list settings.")
    flags.DEFINE_integer("num_iterations", None, "Iterations of the run.")
    if "replay" in _read(path):
        flags.DEFINE_string("replay", None, "Kind of replay; see the field below.")
    flags.DEFINE_bool(
        "overwrite", False, "Remove the outputs of an earlier run in --logdir first."
    )
    _FILES[:] = [path]
    with _flag_errors_told():
        return config_flags.DEFINE_config_file(
            "config", path, "The configuration file, to copy and change."
        )


def _with_rows(words: Sequence[str]) -> list[str]:
    """Returns the command line with the Python file for a preset in a JSON file."""
    return [
        re.sub(r"=(.*\.json)$", rf"={_DEFAULTS}:\1", word)
        if _IS_CONFIG(word) and os.path.exists(word.partition("=")[2])
        else word
        for word in words
    ]


def _default_settings(name: str) -> str:
    """Returns the settings for the command line's agent and environment.

    Says so if they are made for that environment, and not the algorithm's defaults.
    """
    agent, environment, row = (
        _given(flag, sys.argv) for flag in ("config.agent", "env", "preset")
    )
    if row is not None:
        try:
            return f"{_DEFAULTS}:{presets.named(row).name}"
        except ValueError as error:
            errors.exit_with(str(error))
    if agent in registry.CLASSES:
        name = agent
    elif environment is not None and agent is None:
        name = _name_for(name, environment)
    kind = registry.find(name.removesuffix("+"))
    preset = registry.find_preset(kind, environment or kind.environment_name)
    is_shown = not (_SILENT & {*sys.argv} or any(map(_IS_CONFIG, sys.argv)))
    if preset is not None and environment is not None and is_shown:
        print(
            f"{kind.title} on {environment}: {preset.text(environment)}.",
            file=sys.stderr,
        )
    return f"{_DEFAULTS}:{name},{environment or ''}"


def _text_of_missing_file(path: str) -> str:
    """Returns the error for a missing configuration, which suggests a similar file."""
    folder, name = os.path.split(path)
    files = [each.name for each in pathlib.Path(folder).glob("*.py")]
    near = difflib.get_close_matches(name, files, n=1, cutoff=0.5)
    meant = (
        f"did you mean {os.path.join(folder, near[0])}?"
        if near
        else "--preset=NAME takes the settings that tfrl list settings shows."
    )
    return f"--config: got {path!r}, where there is no file; {meant}"


def _name_for(name: str, environment: str) -> str:
    """Returns the algorithm, or its relative that has settings for an environment."""
    if name.endswith("+"):
        return name
    relatives = [
        each for each in registry.CLASSES if registry.find(each).relative == name
    ]
    for each in (name, *relatives):
        if presets.find(each, environment) is not None:
            return each
    return name


def _read(path: str) -> Config:
    """Returns the configuration in a file; `FILE:WORDS` calls it with the words."""
    file, _, words = path.partition(":")
    made: Config = runpy.run_path(file)["get_config"](*[words] * bool(words))
    return made


def _given(flag: str, words: Sequence[str]) -> str | None:
    """Returns the value of a flag, if the command line has it."""
    for word, following in itertools.zip_longest(words, words[1:]):
        name, is_whole, value = word.partition("=")
        if name in (f"--{flag}", f"-{flag}"):
            return value if is_whole else following
    return None


def read_config(flag: Any, replay: str | None = None) -> Config:
    """Returns the configuration, with the values of the plain flags in its fields.

    Args:
      flag: The flag that `define_config` returned.
      replay: The only kind of replay that the script supports; None if it supports
        several.

    Raises:
      ValueError: `--replay` names another kind than `replay`, or a setting is out of
        its range, or both lengths of the run are given.
      TypeError: A setting is not a number.
    """
    config = flag.value
    if "agent" not in config and _NAMES:
        with config.unlocked():
            config.agent = _NAMES[0]
    config.update(_followers(config))
    given = flags.FLAGS.flag_values_dict()
    for name in ("env", "num_iterations", "replay", "seed"):
        if given.get(name) is not None:
            config[name] = given[name]
    if replay is not None:
        if given["replay"] not in (None, replay):
            raise ValueError(
                f"replay: got {given['replay']!r}, expected {replay!r} in this script; "
                "leave it out."
            )
        config.replay = replay
    if given.get("initial_run") is not None:
        with config.unlocked():
            config.initial_run = given["initial_run"]
    steps = given.get("num_environment_steps")
    if steps is not None:
        _set_length(config, steps, given["num_iterations"])
    check(config)
    if steps is not None:
        config.num_iterations = least_iterations(config, steps)
    if config.get("conv_layer_params") and not threads.HAS_USERS_KERNELS:
        # oneDNN's kernels nearly halve the time of an update with convolutions.
        os.environ["TF_ENABLE_ONEDNN_OPTS"] = "1"
    return config


def _followers(config: Config) -> dict[str, Any]:
    """Returns the fields that follow others, which the command line gives."""
    kind = _kind(config)
    given = {
        name: config[name]
        for name in kind.Settings.texts()
        if name in config and _given(f"config.{name}", sys.argv) is not None
    }
    file = _config_file()
    if not (given and file):
        return {}
    followers: dict[str, Any] = kind.Settings.followers(_read(file), given)
    return followers


def _set_length(config: Config, steps: int, num_iterations: int | None) -> None:
    """Sets the length in environment steps, unless one in iterations is given, too."""
    if num_iterations is not None:
        raise ValueError(
            f"num_environment_steps: got {steps}, and {num_iterations} "
            "num_iterations; give one of them."
        )
    with config.unlocked():
        config.num_environment_steps = steps


def check(config: Config) -> None:
    """Checks the fields of a configuration, alone and together.

    Raises:
      ValueError: A field has a value that is not allowed.
      TypeError: A field is not a number.
    """
    for settings in (_kind(config).Settings, distributed.ActorSettings):
        settings.check(config, _remedy_for)
    steps = config.get("num_environment_steps")
    if steps is not None:
        COUNT(
            "num_environment_steps", steps, remedy=_remedy_for("num_environment_steps")
        )


def _kind(config: Config) -> Any:
    return registry.find(config.get("agent", "dqn"))


def _remedy_for(name: str) -> str:
    flag = name if name in _PLAIN else f"config.{name}"
    return f"set --{flag}, or edit the configuration file"


def refuse_environment_steps(config: Config) -> None:
    """Raises a ValueError if a run of updates has a length in environment steps."""
    if "num_environment_steps" in config:
        raise ValueError(
            f"num_environment_steps: got {config.num_environment_steps}, but the "
            "length of this run is its updates; give --num_iterations."
        )


def refuse_initial_run(config: Config) -> None:
    """Raises a ValueError if a run of actors and a learner has an initial run."""
    if "initial_run" in config:
        raise ValueError(
            f"initial_run: got {config.initial_run!r}, but a run of actors and a "
            "learner begins with new weights; leave it out, or train in one process "
            "without actors."
        )


def agent_name(config: Config, agents: Iterable[str]) -> str:
    """Returns which of a script's agents the configuration names.

    Raises:
      ValueError: It names another agent.
    """
    names = list(agents)
    name = config.agent
    if name not in names:
        raise ValueError(
            f"agent: got {name!r}, expected one of {', '.join(map(repr, names))}; set "
            "--config.agent, or run the script of that agent."
        )
    return str(name)


def check_at_most(config: Mapping[str, Any], name: str, limit: str) -> None:
    """Raises a ValueError if the field `name` is larger than the field `limit`."""
    if config[name] > config[limit]:
        raise ValueError(
            f"{name}: expected at most {limit}, {config[limit]}, got {config[name]}; "
            f"lower --config.{name}, or raise --config.{limit}."
        )


def prepare(algorithm: str, config: Config, told: str = "") -> None:
    """Imports TensorFlow for a run, unless the run in its folder has ended.

    If the run is finished, or stopped by a callback, it says so and exits without that
    wait.

    Args:
      algorithm: The algorithm's name in the names of folders.
      config: The configuration.
      told: A line that is printed before the wait, unless with `--quiet`.

    Raises:
      ValueError: There is no such environment, or the algorithm does not choose its
        actions, or the run is to begin with the weights in its own folder.
    """
    initial_run, logdir = config.get("initial_run"), folder_of(algorithm, config)
    if run_folders.is_same(logdir, initial_run):
        raise ValueError(
            f"initial_run: got {initial_run!r}, which is the folder of this run, too; "
            "choose another one for the new run with --logdir."
        )
    if not flags.FLAGS.overwrite and (logdir / "config.json").exists():
        directory = make_directory(algorithm, config)
        iteration = directory.finished_iteration()
        if iteration is not None:
            print(finished_runs.text(iteration, directory.path), file=sys.stderr)
            print(f"Outputs: {directory.path}")
            sys.exit(0)
        stop = stopped_runs.find(directory.path, length(config))
        if stop is not None and not continues():
            print(stop.text(directory.path), file=sys.stderr)
            print(f"Outputs: {directory.path}")
            sys.exit(0)
    check_environment(config)
    if told and not flags.FLAGS.quiet:
        print(told, file=sys.stderr)
    quiet.quieten_tensorflow()


def length(config: Config) -> run_length.RunLength:
    """Returns the length of a run."""
    steps = config.get("num_environment_steps")
    return run_length.RunLength(config.num_iterations if steps is None else None, steps)


def continues() -> bool:
    """Whether a run that a callback has stopped continues."""
    return "continue" in flags.FLAGS and bool(flags.FLAGS["continue"].value)


def check_environment(config: Config) -> None:
    """Checks the environment's name, and that the algorithm chooses its actions.

    Raises:
      ValueError: There is no such environment, or it has other actions.
    """
    # dm_control says which library draws.
    absl_logging.set_verbosity(absl_logging.WARNING)
    space = suites.find_action_space(config.env)
    if not config.get("num_action_bins"):
        spaces.check_space(space, _kind(config), config.env)


def has_checkpoint(algorithm: str, config: Config) -> bool:
    """Whether a checkpoint of this run, from which it resumes, is in its folder."""
    return not flags.FLAGS.overwrite and run_folders.has_checkpoint(
        folder_of(algorithm, config)
    )


def make_directory(
    algorithm: str,
    config: Config,
    may_grow: Sequence[str] = ("num_iterations", "num_environment_steps"),
    further_outputs: Sequence[str] = (),
    **further: Any,
) -> tfrl.train.RunDirectory:
    """Returns the folder of this run, by default a separate one for each seed.

    The configuration and the further settings are written to its config.json. The
    fields of `may_grow` may be larger than when the run began. `further_outputs` are
    the files and folders that only this script writes.
    """
    directory = run_folders.open_folder(
        folder_of(algorithm, config),
        {"algorithm": algorithm, **config.to_dict(), **further},
        _kind(config).Settings.default_values(),
        overwrite=flags.FLAGS.overwrite,
        may_grow=may_grow,
        further_outputs=further_outputs,
    )
    # Until the process ends, no other one may train there.
    directory.lock()
    return directory


def folder_of(algorithm: str, config: Config) -> pathlib.Path:
    """Returns the folder of a run, by default a separate one for each seed."""
    name = re.sub(r"[^\w.-]", "-", f"{algorithm}_{config.env}_{config.seed}")
    return pathlib.Path(flags.FLAGS.logdir or pathlib.Path("logs", name))


def report(
    result: tfrl.train.RunResult | None, directory: tfrl.train.RunDirectory
) -> None:
    """Prints how a run ended.

    If a signal has interrupted it, the process exits with 128 + the signal's number.
    """
    if result is None or not (result.finished or result.stopped_by):
        sys.exit(stop_signals.exit_status())
    if result.last_return is not None:
        # Not at the top: --help does not wait for tqdm.
        from tfrl.train.runs import progress

        steps, updates = result.environment_steps_per_second, result.updates_per_second
        words = [f"{result.iteration:,} iterations"]
        if speed := steps or updates:
            unit = "steps" if steps else "updates"
            words.append(f"{progress.speed_text(speed)} {unit} a second")
        best = ""
        if result.best_return is not None:  # The untrained policy is never the best.
            best = f", of the best: {result.best_return:.1f}"
        print(
            f"{'Finished' if result.finished else 'Stopped after'} {', '.join(words)}. "
            f"Mean return of the last evaluation: {result.last_return:.1f}{best}."
        )
    print(f"Outputs: {directory.path}")


def start(
    main: Callable[..., None], doc: str | None = None, *, takes_words: bool = False
) -> None:
    """Parses the flags and runs `main`; prints user errors without a traceback.

    Args:
      main: The program.
      doc: The first text of `--help`; None for the docstring of the script.
      takes_words: Whether `main` takes the words that are not flags.
    """

    def guarded(words: list[str]) -> None:
        warnings.showwarning = errors.show_warning
        try:
            main(*[words[1:]] * takes_words)
        except Exception as error:
            if interrupts.is_interrupt(error) or not errors.is_for_the_user(error):
                raise
            is_of_users_code = errors.is_of_users_code(error)
            if flags.FLAGS.traceback or is_of_users_code:
                traceback.print_exc()
            if is_of_users_code:
                errors.exit_with(" ".join([f"{error!r}.", *error.__notes__]))
            errors.exit_with(
                errors.describe(error),
                "--traceback shows where, --help lists the flags",
            )

    if "traceback" not in flags.FLAGS:
        define_flags()
    doc = doc or sys.modules["__main__"].__doc__ or ""
    flags.FLAGS.set_gnu_getopt(takes_words)
    app.run(guarded, flags_parser=lambda words: _parse_flags(words, doc, takes_words))


def _parse_flags(words: list[str], doc: str, takes_words: bool) -> list[str]:
    """Reads the flags; if they request help or are wrong, prints that and exits."""
    wants_help = not _HELP.isdisjoint(words)
    with _flag_errors_told():
        # Help shows the defaults of the file that is given.
        kept = [words[0], *filter(_IS_CONFIG, words)] if wants_help else words
        rest = flags.FLAGS(kept)
    if wants_help:
        file = _config_file()
        config = flags.FLAGS["config"].value if file else None
        _print_to_its_end(flag_help.text(doc, config, file))
        sys.exit()
    if len(rest) > 1 and not takes_words:
        errors.exit_with(
            f"arguments: got {' '.join(rest[1:])!r}, expected flags only; write "
            "--name=value."
        )
    return rest


def _print_to_its_end(text: str) -> None:
    """Prints; ends in silence if the reader has closed the pipe, as `head` does."""
    try:
        print(text, flush=True)
    except BrokenPipeError:
        # Python flushes standard output once more when it ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _config_file() -> str:
    """Returns the last file that `--config` gives, or the default; empty without it."""
    given = [word.split("=", 1)[1] for word in sys.argv if _IS_CONFIG(word)]
    return [*_FILES, *given][-1] if _FILES else ""


@contextlib.contextmanager
def _flag_errors_told() -> Iterator[None]:
    """Exits with a message if a flag is wrong, or the configuration lacks its field."""
    try:
        yield
    except flags.UnrecognizedFlagError as error:
        _exit_unknown(error.flagname)
    except flags.IllegalFlagValueError as error:
        errors.exit_with(errors.text_of_wrong_value(str(error)))
    except flags.Error as error:
        errors.exit_with(str(error))
    except (AttributeError, KeyError) as error:
        if not errors.is_about_config(error):
            raise
        reason: Any = error
        while isinstance(reason, Exception) and reason.args:
            reason = reason.args[0]
        # It begins with the field's name in quotes.
        field = re.search(r"[\w.]+", str(reason))
        _exit_unknown(f"config.{field[0] if field else ''}")


def _exit_unknown(name: str) -> NoReturn:
    """Exits with a message that suggests the flag or field nearest to `name`."""
    file = _config_file()
    near = flag_help.nearest(name, _read(file) if file else None)
    errors.exit_with(
        f"--{name}: unknown flag" + (f"; did you mean {near}?" if near else "")
    )
