"""Finds and loads the saved policy that a script's flags name."""

from __future__ import annotations

import pathlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from absl import flags

from tfrl.algorithms import learning, registry, run_folders, worlds
from tfrl.algorithms import settings as settings_lib
from tfrl.command import parsing, program
from tfrl.environments import suites
from tfrl.train.runs import run_files


def define_flags() -> flags.FlagValues:
    """Returns the flags that name a saved policy, and those of a command that plays."""
    given = parsing.new(
        env="Gymnasium environment, such as CartPole-v1.",
        policy="Folder of the saved policy; FOLDER/policy by default.",
    )
    flags.DEFINE_integer("seed", None, "Seed of the episodes.", flag_values=given)
    text = "Run what the folder brings: the graph of a SavedModel, a module of its own."
    parsing.add(given, "trust", False, text)
    return given


def start(
    given: flags.FlagValues,
    words: Sequence[str],
    run: Callable[[str | None], None],
    text: str | None,
) -> None:
    """Runs a command whose only word is the folder of a run.

    Args:
      given: The flags of the command.
      words: The words of the command line after the command's name.
      run: The command, a function of the folder, which is None if there is none.
      text: The first text of `--help`.
    """

    def main(folders: Sequence[str]) -> None:
        if len(folders) > 1:
            raise ValueError(
                f"folder: got {' '.join(folders)}, expected the folder of one run."
            )
        run(folders[0] if folders else None)

    program.start(given, words, main, text, takes_words=True)


class Saved(NamedTuple):
    """A saved policy, and the environment that it is for.

    Attributes:
      path: The policy's folder.
      env: The environment's name.
      seed: The seed to play with.
      environment: The further arguments of `worlds.make_environment`, as the run had
        them: with `num_action_bins`, the policy returns the number of a bin.
      config: The configuration of its run, by which the policy is built again; None
        for a policy whose SavedModel runs, which the user trusts.
    """

    path: pathlib.Path
    env: str
    seed: int
    environment: dict[str, Any]
    config: dict[str, Any] | None

    def make_environment(self, num_envs: int) -> Any:
        """Makes so many environments, which are stepped together."""
        return worlds.make_environment(
            self.env, num_envs, self.seed, **self.environment
        )

    def load(self, environment: Any) -> Any:
        """Returns the policy; raises a ValueError if it is damaged.

        Args:
          environment: The environment that it acts in.
        """
        if self.config is None:
            return _load_graph(self.path)
        try:
            return learning.load_policy(self.config, environment, self.path, self.env)
        except (TypeError, ValueError) as error:
            raise ValueError(f"--policy: {error}") from error


def _load_graph(path: pathlib.Path) -> Any:
    """Returns the saved policy; raises a ValueError if it is damaged."""
    # Not at the top: --help does not wait for TensorFlow.
    from tfrl.policies.saving import saved_model

    try:
        saved_model.check_files(path)
        policy = saved_model.load_saved_model(str(path))
        if not (hasattr(policy, "action") and hasattr(policy, "get_initial_state")):
            raise ValueError("it is no policy")
        return policy
    except (OSError, ValueError) as error:
        reason = " ".join(str(error.__cause__ or error).split())
        raise ValueError(
            f"--policy: {str(path)!r} cannot be loaded ({reason}); restore it from a "
            "copy, or run the command that trained it again, which writes it again."
        ) from error


def find(given: flags.FlagValues, folder: str | None) -> Saved:
    """Returns the policy of the run in a folder, or the one that the flags name."""
    if not given.policy and not folder:
        raise ValueError(
            "folder: expected the folder of a run, got none; give one, such as "
            "logs/dqn_CartPole-v1_0, or --policy=FOLDER and --env=NAME."
        )
    path = pathlib.Path(given.policy or f"{folder}/policy")
    files = "saved_model.pb", "variables/variables.index"
    if not any((path / file).exists() for file in files):
        if not given.policy:
            run_files.check_run(path.parent)
        raise ValueError(
            "--policy: expected a folder with variables and a saved_model.pb, got "
            f"{str(path)!r}; training writes one to FOLDER/policy after its first "
            "evaluation."
        )
    # Else the run's folder is the folder that holds the policy, if any.
    run = pathlib.Path(folder or path.parent)
    settings = run_folders.read(run) if (run / "config.json").exists() else {}
    name = given.env or settings.get("env")
    if not name:
        config = run / "config.json"
        lack = "names none" if config.exists() else "is not there"
        raise ValueError(
            f"--env: expected the environment's name, got none, and {config} {lack}; "
            "give --env=NAME."
        )
    if not given.trust:
        run_files.check_tree(path)
        run_folders.check_trusted(
            run, settings, "give --trust", takes_environment=not given.env
        )
    suites.find_action_space(name)  # It checks the name.
    own = worlds.own_settings(settings)
    has_recipe = registry.name_of(settings) in registry.CLASSES
    if has_recipe:
        with run_folders.naming(run):
            own["fit"] = registry.algorithm_of(settings, name).world.fit
    if not has_recipe or settings.get("own_parts"):
        _check_trusted(path, run, settings, trusts=given.trust)
        settings = {}
    seed = 123_456 if given.seed is None else given.seed
    settings_lib.SEED("seed", seed, remedy="set --seed")
    return Saved(path, name, seed, own, settings or None)


def _check_trusted(
    path: pathlib.Path,
    run: pathlib.Path,
    settings: Mapping[str, Any],
    *,
    trusts: bool,
) -> None:
    """Raises a ValueError if a SavedModel would run that the user does not trust."""
    parts = settings.get("own_parts")
    why = (
        run_folders.text_of_own_parts(run, parts)
        if parts
        else f"{run / 'config.json'} has no algorithm of tfrl"
    )
    if not trusts:
        raise ValueError(
            f"--policy: {why}, so that the policy cannot be built by its settings, and "
            f"the graph in {path / 'saved_model.pb'} would run, which may do anything; "
            "give --trust if you trust the file, or load the run in the program with "
            "its parts: tfrl.load(FOLDER, network=...)."
        )
