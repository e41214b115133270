"""Finds and loads the saved policy that a script's flags name."""

from __future__ import annotations

import pathlib
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from absl import flags

from tfrl import environments
from tfrl.algorithms import learning, run_folders, worlds
from tfrl.algorithms import settings as settings_lib
from tfrl.algorithms.recipe import Recipe
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
      recipe: The recipe of its run, by which the policy is built again; None for a
        policy whose SavedModel runs, which the user trusts.
    """

    path: pathlib.Path
    env: str
    seed: int
    environment: dict[str, Any]
    recipe: Recipe | None

    def make_environment(self, num_envs: int) -> environments.TFEnvironment:
        """Makes so many environments, which are stepped together."""
        return worlds.make_environment(
            self.env, num_envs, self.seed, **self.environment
        )

    def load(self, environment: environments.TFEnvironment) -> Any:
        """Returns the policy; raises a ValueError if it is damaged.

        Args:
          environment: The environment that it acts in.
        """
        if self.recipe is None:
            return _load_graph(self.path)
        try:
            return learning.load_policy(self.recipe, environment, self.path, self.env)
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
    path = _find_files(given.policy, folder)
    # Else the run's folder is the folder that holds the policy, if any.
    run = pathlib.Path(folder or path.parent)
    config = run / "config.json"
    fields = run_folders.read(run) if config.exists() else {}
    recipe = run_folders.recipe_in(run, fields)
    name = given.env or fields.get("env")
    if not name:
        lack = "names none" if config.exists() else "is not there"
        raise ValueError(
            f"--env: expected the environment's name, got none, and {config} {lack}; "
            "give --env=NAME."
        )
    if not given.trust:
        _check_trusted(path, run, recipe, name_in_run="" if given.env else name)
    suites.find_action_space(name)  # It checks the name.
    options = worlds.own_settings({**fields, **(fields.get("env_options") or {})})
    if recipe is not None:
        with run_folders.naming(run):
            options["fit"] = recipe.make(name).world.fit
    seed = 123_456 if given.seed is None else given.seed
    settings_lib.SEED("seed", seed, remedy="set --seed")
    is_buildable = recipe is not None and not recipe.own_parts
    return Saved(path, name, seed, options, recipe if is_buildable else None)


def _find_files(policy: str | None, folder: str | None) -> pathlib.Path:
    """Returns the folder of a saved policy.

    Args:
      policy: What `--policy` names.
      folder: The folder of the run.

    Raises:
      ValueError: Neither is given, or there is no policy.
    """
    if not policy and not folder:
        raise ValueError(
            "folder: expected the folder of a run, got none; give one, such as "
            "logs/dqn_CartPole-v1_0, or --policy=FOLDER and --env=NAME."
        )
    path = pathlib.Path(policy or f"{folder}/policy")
    files = "saved_model.pb", "variables/variables.index"
    if any((path / file).exists() for file in files):
        return path
    if not policy:
        run_files.check_run(path.parent)
    raise ValueError(
        "--policy: expected a folder with variables and a saved_model.pb, got "
        f"{str(path)!r}; training writes one to FOLDER/policy after its first "
        "evaluation."
    )


def _check_trusted(
    path: pathlib.Path, run: pathlib.Path, recipe: Recipe | None, *, name_in_run: str
) -> None:
    """Checks what a policy's folder would make this process do.

    Args:
      path: The policy's folder.
      run: The run's folder.
      recipe: The run's recipe; None if it has none.
      name_in_run: The environment that its config.json names; empty if it is not made.

    Raises:
      ValueError: It would run a module, or a graph, that the user does not trust.
    """
    run_files.check_tree(path)
    if recipe is not None:
        run_folders.check_trusted(
            run, recipe, "give --trust", takes_environment=bool(name_in_run)
        )
    else:
        suites.check_trusted(name_in_run, run / "config.json", "give --trust")
    if recipe is not None and not recipe.own_parts:
        return
    why = (
        f"{run / 'config.json'} has no algorithm of tfrl"
        if recipe is None
        else run_folders.text_of_own_parts(run, recipe.own_parts)
    )
    raise ValueError(
        f"--policy: {why}, so that the policy cannot be built by its settings, and "
        f"the graph in {path / 'saved_model.pb'} would run, which may do anything; "
        "give --trust if you trust the file, or load the run in the program with "
        "its parts: tfrl.load(FOLDER, network=...)."
    )
