"""Parses the examples' flags, reads their configuration, and reports errors.

TensorFlow is imported when a script first uses it: neither `--help` nor an error in a
flag waits for it.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import pathlib
import re
import runpy
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NoReturn

import ml_collections
from absl import app, flags
from ml_collections import config_flags

import examples
import tfrl
from examples import checks, flag_help, grids, interrupts, settings, velocities
from tfrl.savers import checkpoint_names
from tfrl.system import quiet
from tfrl.train.runs import finished_runs, run_config

Config = ml_collections.ConfigDict

# The fields that have a flag of their own.
_PLAIN = ("env", "num_environment_steps", "num_iterations", "replay", "seed")

# The flags whose values come to the loops and environments by another name.
_ORIGINS = {
    "environment_name": "--env",
    "max_length": "--config.replay_capacity",
    "num_frames": "--config.frame_stack",
    "max_sequence_length": "--config.replay_capacity",
}

# The settings of a run that its environments are made with.
_OF_ENVIRONMENT = ("num_action_bins", "emulator", "grid_observations")

_CONFIGS = pathlib.Path(__file__).resolve().parent.parent / "configs"
_IS_CONFIG = re.compile("--?config=").match
_HELP = {"--help", "-help", "-h", "-?", "--helpshort", "-helpshort"}

ENV = flags.DEFINE_string("env", None, "Gymnasium environment, such as CartPole-v1.")
SEED = flags.DEFINE_integer("seed", None, "Seed of everything random.")
LOGDIR = flags.DEFINE_string("logdir", None, "Folder of the run, by default in logs.")
_TRACEBACK = flags.DEFINE_bool("traceback", False, "Show the traceback of an error.")


def define_config(name: str) -> Any:
    """Defines `--config` and `--config.FIELD=VALUE`.

    The default is `configs/NAME.py`, or `configs/NAME_*.py` if that has the settings of
    the environment that `--env` gives. Also defines the other flags of a script that
    has a configuration.
    """
    default = _default_settings(name)
    flags.DEFINE_integer("num_iterations", None, "Length of the run.")
    if "replay" in flag_help.comments(default):
        flags.DEFINE_string("replay", None, "Kind of replay; see the field below.")
    flags.DEFINE_bool(
        "overwrite", False, "Remove the outputs of an earlier run in --logdir first."
    )
    with _flag_errors_told(_config_file(default)):
        return config_flags.DEFINE_config_file(
            "config", default, "The configuration file, to copy and change."
        )


def _default_settings(name: str) -> str:
    """Returns the file of the settings for the command line's agent and environment.

    `configs/AGENT.py` has the settings of an agent, if there is such a file. Says so if
    the file is not `configs/NAME.py`.
    """
    default = made = _CONFIGS / f"{name}.py"
    agent, environment = (_given(flag, sys.argv) for flag in ("config.agent", "env"))
    if not any(map(_IS_CONFIG, sys.argv)):
        made = settings.find(default, environment, agent)
    if made != default and _HELP.isdisjoint(sys.argv):
        meant = " on ".join(filter(None, (agent, environment)))
        print(
            f"Settings: {os.path.relpath(made)}, made for {meant}; "
            f"--config={os.path.relpath(default)} would take that file's instead.",
            file=sys.stderr,
        )
    return os.path.relpath(made)


def _given(flag: str, words: Sequence[str]) -> str | None:
    """Returns the value of a flag, if the command line has it."""
    for word, following in itertools.zip_longest(words, words[1:]):
        name, is_whole, value = word.partition("=")
        if name in (f"--{flag}", f"-{flag}"):
            return value if is_whole else following
    return None


def default_config(name: str) -> Config:
    """Returns the settings in `configs/NAME.py`."""
    config: Config = runpy.run_path(str(_CONFIGS / f"{name}.py"))["get_config"]()
    return config


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
        if given["num_iterations"] is not None:
            raise ValueError(
                f"num_environment_steps: got {steps}, and {given['num_iterations']} "
                "num_iterations; give one of them."
            )
        with config.unlocked():
            config.num_environment_steps = steps
    checks.check(config, _PLAIN)
    if steps is not None:
        config.num_iterations = _least_iterations(config)
    if config.get("conv_layer_params") and not examples.HAS_USERS_KERNELS:
        # oneDNN's kernels nearly halve the time of an update with convolutions.
        os.environ["TF_ENABLE_ONEDNN_OPTS"] = "1"
    return config


def _least_iterations(config: Config) -> int:
    """Returns the least number of iterations that take the steps of a run.

    A learning rate that decays until the end depends on this number.
    """
    each = config.get("collect_steps_per_iteration") or config.get("sequence_length")
    if not each:
        return config.num_iterations
    each *= config.get("num_envs", 1)
    left = config.num_environment_steps - config.get("initial_collect_steps", 0)
    return max(-(-left // each), 1)


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

    A configuration without the field `agent` means the script's only one.

    Raises:
      ValueError: It names another agent.
    """
    names = list(agents)
    name = config.get("agent", names[0])
    if name not in names:
        raise ValueError(
            f"agent: got {name!r}, expected one of {', '.join(map(repr, names))}; set "
            "--config.agent, or run the script of that agent."
        )
    return str(name)


def prepare(algorithm: str, config: Config) -> None:
    """Imports TensorFlow for a run, unless the run in its folder is finished.

    Says so and exits if it is finished, without that wait.

    Raises:
      ValueError: The run is to begin with the weights in its own folder.
    """
    initial_run, logdir = config.get("initial_run"), _logdir(algorithm, config)
    if initial_run and pathlib.Path(initial_run).resolve() == logdir.resolve():
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
    quiet.quieten_tensorflow()


def has_checkpoint(algorithm: str, config: Config) -> bool:
    """Whether a checkpoint of this run, from which it resumes, is in its folder."""
    if flags.FLAGS.overwrite:
        return False
    checkpoints = _logdir(algorithm, config) / "checkpoints"
    return checkpoints.is_dir() and bool(checkpoint_names.newest_first(checkpoints))


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
    fields = {"algorithm": algorithm, **config.to_dict(), **further}
    logdir = _logdir(algorithm, config)
    if not flags.FLAGS.overwrite and (logdir / "config.json").exists():
        # An earlier version, without some of the fields, may have begun the run.
        begun = run_config.read(logdir / "config.json")
        for name, value in settings.LATER_FIELDS.items():
            if name not in begun and fields.get(name) == value:
                del fields[name]
    directory = tfrl.train.RunDirectory(
        logdir,
        fields,
        overwrite=flags.FLAGS.overwrite,
        # A run may resume on another device.
        may_change=["device"],
        may_grow=may_grow,
        further_outputs=further_outputs,
    )
    # Until the process ends, no other one may train there.
    directory.lock()
    return directory


def _logdir(algorithm: str, config: Config) -> pathlib.Path:
    name = re.sub(r"[^\w.-]", "-", f"{algorithm}_{config.env}_{config.seed}")
    return pathlib.Path(LOGDIR.value or pathlib.Path("logs", name))


def environment_settings(config: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the settings among a run's that `make_environment` takes."""
    return {name: config[name] for name in _OF_ENVIRONMENT if name in config}


def make_environment(
    name: str,
    num_envs: int,
    seed: int,
    num_action_bins: int = 0,
    *,
    is_training: bool = False,
    emulator: str = "ale-py",
    grid_observations: str = "flat",
) -> tfrl.environments.TFEnvironment:
    """Makes one Gymnasium environment, or `num_envs` of them stepped together.

    Tasks of dm_control have names such as dm_control/cartpole-balance, and environments
    without velocities such as CartPoleNoVel-v1; see `velocities`. BitFlipping10-v0 is
    written in TensorFlow; see `tfrl.environments.native.bit_flipping`.

    With `num_action_bins` an action is the number of one of so many evenly spaced
    values of the environment's continuous action. Atari games have the usual
    preprocessing; with `is_training`, a lost life ends an episode, and rewards become
    their signs. For `emulator`, see `suite_atari.load_batch`. `grid_observations` is
    how MiniGrid's grids are seen; see `grids.wrappers_of`.
    """
    if tfrl.environments.native.bit_flipping.is_task(name):
        return make_native_environment(name, num_envs, seed, num_action_bins)
    environment: tfrl.environments.PyEnvironment
    name, positions = velocities.split(name)
    gym_env_wrappers = grids.wrappers_of(name, grid_observations)
    if tfrl.environments.suite_atari.is_game(name):
        environment = tfrl.environments.suite_atari.load_batch(
            name,
            num_envs,
            noop_max=30,
            fire_on_reset=True,
            terminal_on_life_loss=is_training,
            clip_rewards=is_training,
            emulator=emulator,
        )
    elif tfrl.environments.suite_dm_control.is_task(name):
        environment = tfrl.environments.suite_dm_control.load_batch(name, num_envs)
    elif num_envs == 1:
        environment = tfrl.environments.suite_gym.load(
            name, gym_env_wrappers=gym_env_wrappers
        )
    else:
        environment = tfrl.environments.gymnasium.vector_py_environment.load(
            name, num_envs, gym_env_wrappers=gym_env_wrappers
        )
    if positions is not None:
        environment = tfrl.environments.wrappers.ObservationFilterWrapper(
            environment, positions
        )
    if num_action_bins:
        try:
            environment = tfrl.environments.wrappers.ActionDiscretizeWrapper(
                environment, num_action_bins
            )
        except ValueError as error:
            raise ValueError(f"num_action_bins for {name!r}: {error}") from None
    environment.seed(seed)
    return tfrl.environments.TFPyEnvironment(environment)


def make_native_environment(
    name: str, num_envs: int, seed: int, num_action_bins: int = 0
) -> tfrl.environments.native.NativeEnvironment:
    """Makes an environment that is written in TensorFlow; see `make_environment`."""
    native = tfrl.environments.native
    environment = native.load(name, num_envs, seed)
    if not num_action_bins:
        return environment
    dynamics = native.discretize_actions(environment.dynamics, num_action_bins)
    return native.NativeEnvironment(dynamics, num_envs, seed)


def make_observation_normalizer(
    config: Config, environment: tfrl.environments.TFEnvironment
) -> tfrl.utils.tensor_normalizer.TensorNormalizer | None:
    """Makes the normalizer of an agent's observations, if the configuration asks."""
    if not config.normalize_observations:
        return None
    return tfrl.utils.tensor_normalizer.StreamingTensorNormalizer(
        environment.observation_spec()
    )


def make_video_environment(
    name: str, **settings: Any
) -> tfrl.environments.TFEnvironment | None:
    """Makes an environment to film; None if it cannot be rendered as pictures.

    The settings are further ones of `make_environment`.
    """
    if tfrl.environments.suite_atari.is_game(
        name
    ) or tfrl.environments.native.bit_flipping.is_task(name):
        return make_environment(name, 1, 1, **settings)
    if tfrl.environments.suite_dm_control.is_task(name):
        return None
    spec = tfrl.environments.suite_gym.find_spec(velocities.split(name)[0])
    kwargs = {**spec.kwargs, **tfrl.environments.suite_gym.make_kwargs(spec)}
    if kwargs.get("render_mode") != "rgb_array":
        return None
    return make_environment(name, 1, 1, **settings)


def refuse_games(name: str) -> None:
    """Raises a ValueError for an Atari game, which needs convolutions."""
    if tfrl.environments.suite_atari.is_game(name):
        raise ValueError(
            f"env: got {name!r}, an Atari game, but the networks of this configuration "
            "have dense layers alone; train DQN: python -m examples.train_dqn "
            f"--config=configs/dqn_atari.py --env={name}"
        )


def check_discrete_actions(name: str, action_spec: Any, algorithm: str = "DQN") -> None:
    """Raises a ValueError if the actions of environment `name` are continuous."""
    import tensorflow as tf

    specs = tf.nest.flatten(action_spec)
    if any(map(tfrl.specs.tensor_spec.is_continuous, specs)):
        has_one = len(specs) == 1 and specs[0].shape.num_elements() == 1
        bins = "set --config.num_action_bins=11, for example, or "
        raise ValueError(
            f"env: got {name!r}, whose actions are continuous, but {algorithm} chooses "
            f"among discrete ones; {bins if algorithm == 'DQN' and has_one else ''}"
            f"train SAC: python -m examples.train_sac --env={name}"
        )


def check_continuous_actions(name: str, action_spec: Any, algorithm: str) -> None:
    """Raises a ValueError unless the actions of `name` are floats with bounds."""
    import tensorflow as tf

    from tfrl.agents import checks

    specs = tf.nest.flatten(action_spec)
    if not all(map(tfrl.specs.tensor_spec.is_continuous, specs)):
        raise ValueError(
            f"env: got {name!r}, whose actions are discrete, but {algorithm} chooses "
            f"continuous ones; train DQN: python -m examples.train_dqn --env={name}"
        )
    checks.as_continuous_action_spec(action_spec, algorithm)


def report(
    result: tfrl.train.RunResult | None, directory: tfrl.train.RunDirectory
) -> None:
    """Prints how a run ended; exits with status 130 if it was interrupted."""
    if result is None or not (result.finished or result.stopped_by):
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

    def guarded(_arguments: list[str]) -> None:
        try:
            main()
        except Exception as error:
            if interrupts.is_interrupt(error) or not _is_for_the_user(error):
                raise
            is_of_users_code = _is_of_users_code(error)
            if _TRACEBACK.value or is_of_users_code:
                traceback.print_exc()
            if is_of_users_code:
                _exit(" ".join([f"{error!r}.", *error.__notes__]))
            _exit(_text(error), "--traceback shows where, --help lists the flags")

    app.run(guarded, flags_parser=_parse_flags)


def _parse_flags(words: list[str]) -> list[str]:
    """Reads the flags; prints the help that they ask for, or their error, and exits."""
    config_file = None
    if "config" in flags.FLAGS:
        config_file = _config_file(flags.FLAGS["config"].default_as_str[1:-1])
    wants_help = not _HELP.isdisjoint(words)
    with _flag_errors_told(config_file):
        # Help shows the defaults of the file that is given.
        kept = [words[0], *filter(_IS_CONFIG, words)] if wants_help else words
        rest = flags.FLAGS(kept)
    if wants_help:
        doc = sys.modules["__main__"].__doc__ or ""
        _print_to_its_end(flag_help.text(doc, config_file))
        sys.exit()
    if len(rest) > 1:
        _exit(
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


def _config_file(default: str) -> str:
    """Returns the last file that `--config` gives, or the default."""
    given = [word.split("=", 1)[1] for word in sys.argv if _IS_CONFIG(word)]
    return given[-1] if given else default


def _text(error: Exception) -> str:
    """Returns the part of an error's message that is about the settings.

    TensorFlow's dump is left out. The text names the flags that misnamed arguments come
    from. For a lack of memory it names the settings to lower.
    """
    text = str(error)
    # TensorFlow's own error is known by its name, since the script may not need it.
    if isinstance(error, MemoryError) or type(error).__name__ == (
        "ResourceExhaustedError"
    ):
        lines = text.splitlines() or [type(error).__name__]
        reason = next((line for line in lines if "llocat" in line), lines[0])
        return (
            "memory: the run needs more than there is; lower a setting that it grows "
            "with, such as num_envs, batch_size, replay_capacity, fc_layer_params or "
            f"num_episodes ({reason})."
        )
    # The error of a Python function in a graph is at the end of the dump.
    raised = re.findall(r"^\w+Error: (.+)$", text, re.MULTILINE)
    if text.startswith("Graph execution error") and raised:
        text = raised[-1]
    origins = [
        f"Here {argument} comes from {flag}."
        for argument, flag in _ORIGINS.items()
        if re.search(rf"\b{argument}\b", text)
    ]
    return " ".join([text, *origins])


def _is_of_users_code(error: Exception) -> bool:
    """Whether an environment or a callback of the user raised an error in a run."""
    if not getattr(error, "__notes__", ()):
        return False
    *_, innermost = traceback.walk_tb(error.__traceback__)
    module = innermost[0].f_globals.get("__name__", "")
    return module.partition(".")[0] not in ("tfrl", "examples", "tensorflow", "keras")


def _is_for_the_user(error: Exception) -> bool:
    """Whether the message of an error says what a user of the script should change."""
    if isinstance(
        error,
        (
            ArithmeticError,
            ImportError,
            LookupError,
            MemoryError,
            OSError,
            RuntimeError,
            TypeError,
            ValueError,
        ),
    ):
        return True
    import gymnasium
    import tensorflow as tf

    from tfrl.savers import whole_checkpoints

    return isinstance(
        error,
        (
            whole_checkpoints.CheckpointError,
            gymnasium.error.Error,
            tfrl.replay_service.ReverbError,
            tf.errors.InvalidArgumentError,
            tf.errors.ResourceExhaustedError,
        ),
    )


@contextlib.contextmanager
def _flag_errors_told(config_file: str | None) -> Iterator[None]:
    """Exits with a message if a flag is wrong, or the configuration lacks its field."""
    try:
        yield
    except flags.UnrecognizedFlagError as error:
        _exit_unknown(error.flagname, config_file)
    except flags.IllegalFlagValueError as error:
        _exit(_text_of_wrong_value(str(error)))
    except flags.Error as error:
        _exit(str(error))
    except (AttributeError, KeyError) as error:
        if not _is_about_config(error):
            raise
        reason: Any = error
        while isinstance(reason, Exception) and reason.args:
            reason = reason.args[0]
        # It begins with the field's name in quotes.
        field = re.search(r"[\w.]+", str(reason))
        _exit_unknown(f"config.{field[0] if field else ''}", config_file)


def _text_of_wrong_value(told: str) -> str:
    """Returns the error of a flag's value in the words of the other messages.

    Args:
      told: The library's message, `flag --NAME=VALUE: ...`.
    """
    found = re.match(r"flag --([\w.]+)=(.*?): ", told, re.DOTALL)
    if found is None or found[1] not in flags.FLAGS:
        return told
    name, value = found.groups()
    flag = flags.FLAGS[name]
    expected = "true or false" if flag.boolean else flag.parser.syntactic_help
    return f"--{name}: expected {expected}, got {value!r}; write --{name}=VALUE."


def _exit_unknown(name: str, config_file: str | None) -> NoReturn:
    """Exits with a message that suggests the flag or field nearest to `name`."""
    near = flag_help.nearest(name, config_file)
    _exit(f"--{name}: unknown flag" + (f"; did you mean {near}?" if near else ""))


def _exit(message: str, hint: str = "--help lists the flags") -> NoReturn:
    """Prints an error and a hint, and exits with status 2."""
    print(f"error: {message}", file=sys.stderr)
    print(f"({hint})", file=sys.stderr)
    sys.exit(2)


def _is_about_config(error: BaseException) -> bool:
    """Whether the library of configurations raised an error."""
    frames = traceback.extract_tb(error.__traceback__)
    return "ml_collections" in pathlib.Path(frames[-1].filename).parts
