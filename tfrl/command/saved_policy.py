"""Finds and loads the saved policy that a script's flags name."""

from __future__ import annotations

import pathlib
from typing import Any, NamedTuple

from absl import flags

from tfrl.algorithms import registry, run_folders, worlds
from tfrl.algorithms import settings as settings_lib
from tfrl.command import parsing
from tfrl.environments import suites


def define_flags() -> flags.FlagValues:
    """Returns the flags that name a saved policy, and those of a command that plays."""
    given = parsing.new(
        env="Gymnasium environment, such as CartPole-v1.",
        logdir="Folder of the run.",
        policy="Folder of the saved policy; LOGDIR/policy by default.",
    )
    flags.DEFINE_integer("seed", None, "Seed of the episodes.", flag_values=given)
    return given


def load(path: pathlib.Path) -> Any:
    """Returns the saved policy; raises a ValueError if it is damaged."""
    # Not at the top: --help does not wait for TensorFlow.
    from tfrl.policies.saving import saved_model

    try:
        for file in path.rglob("*"):
            if not (file.is_file() or file.is_dir()):
                raise OSError(f"{file.name} is no file")  # A pipe would never end.
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


class Saved(NamedTuple):
    """A saved policy, and the environment that it is for.

    Attributes:
      path: The policy's folder.
      env: The environment's name.
      seed: The seed to play with.
      environment: The further arguments of `worlds.make_environment`, as the run had
        them: with `num_action_bins`, the policy returns the number of a bin.
    """

    path: pathlib.Path
    env: str
    seed: int
    environment: dict[str, Any]


def find(given: flags.FlagValues) -> Saved:
    """Returns the policy that the flags name."""
    if not given.policy and not given.logdir:
        raise ValueError(
            "--logdir: expected the folder of a run, got none; give --logdir=FOLDER, "
            "or --policy=FOLDER and --env=NAME."
        )
    path = pathlib.Path(given.policy or f"{given.logdir}/policy")
    if not (path / "saved_model.pb").exists():
        raise ValueError(
            f"--policy: expected a folder with a saved_model.pb, got {str(path)!r}; "
            "training writes one to LOGDIR/policy after its first evaluation."
        )
    # Without --logdir, the run's folder is the folder that holds the policy, if any.
    run = pathlib.Path(given.logdir or path.parent)
    settings = run_folders.read(run) if (run / "config.json").exists() else {}
    name = given.env or settings.get("env")
    if name is None:
        config = run / "config.json"
        lack = "names none" if config.exists() else "is not there"
        raise ValueError(
            f"--env: expected the environment's name, got none, and {config} {lack}; "
            "give --env=NAME."
        )
    suites.find_action_space(name)  # It checks the name.
    own = worlds.own_settings(settings)
    if registry.name_of(settings) in registry.CLASSES:
        with run_folders.naming(run):
            own["fit"] = registry.algorithm_of(settings).world.fit
    seed = 123_456 if given.seed is None else given.seed
    settings_lib.SEED("seed", seed, remedy="set --seed")
    return Saved(path, name, seed, own)
