"""Writes the text of `--help`, and finds the flag that a wrong one was meant to be."""

from __future__ import annotations

import difflib
import pathlib
import re
import textwrap
from collections.abc import Iterable, Mapping
from typing import Any

from absl import flags

from tfrl.algorithms import distributed, registry

_WIDTH = 88
# A field that a configuration file adds, with the comment after it.
_FIELD = re.compile(r"^ +config\.(\w+) = (.*?)(?:  # (.*))?$", re.MULTILINE)
# The flags here that do the same as flags of other libraries.
_OF_OTHERS = {
    "alg": "config.agent",
    "algo": "config.agent",
    "algorithm": "config.agent",
    "buffer_size": "config.replay_capacity",
    "device_name": "config.device",
    "discount": "config.gamma",
    "ent_coef": "config.entropy_regularization",
    "entropy_coef": "config.entropy_regularization",
    "env_id": "env",
    "env_name": "env",
    "exploration_final_eps": "config.final_epsilon",
    "exploration_initial_eps": "config.initial_epsilon",
    "gae_lambda": "config.lambda_value",
    "game": "env",
    "gym_id": "env",
    "hidden_sizes": "config.fc_layer_params",
    "learning_starts": "config.initial_collect_steps",
    "log_dir": "logdir",
    "log_folder": "logdir",
    "lr": "config.learning_rate",
    "max_grad_norm": "config.max_gradient_norm",
    "max_timesteps": "num_environment_steps",
    "n_envs": "config.num_envs",
    "n_epochs": "config.num_epochs",
    "n_steps": "config.collect_steps_per_iteration",
    "n_timesteps": "num_environment_steps",
    "net_arch": "config.fc_layer_params",
    "num_actors": "config.num_envs",
    "num_env": "config.num_envs",
    "num_environment_steps": "num_iterations",
    "num_frames": "num_environment_steps",
    "num_steps": "config.collect_steps_per_iteration",
    "num_timesteps": "num_environment_steps",
    "output_dir": "logdir",
    "save_path": "logdir",
    "tau": "config.target_update_tau",
    "total_steps": "num_environment_steps",
    "total_timesteps": "num_environment_steps",
    "train_freq": "config.collect_steps_per_iteration",
    "update_epochs": "config.num_epochs",
}
_OWN = {"env": "Gymnasium environment.", "agent": "The algorithm."}


def texts(config: Mapping[str, Any], config_file: str) -> dict[str, str]:
    """Returns the help of a configuration's fields.

    Args:
      config: The configuration.
      config_file: Its file, whose comments on fields come first.
    """
    kind = registry.find(config.get("agent", "dqn"))
    known = {**_OWN, **kind.Settings.texts()}
    known = {**known, **distributed.ActorSettings.texts(), **known}
    source = pathlib.Path(config_file.partition(":")[0]).read_text(encoding="utf-8")
    comments = {name: comment for name, _, comment in _FIELD.findall(source) if comment}
    known |= comments
    order = [*known, *config]
    return {name: known.get(name, "") for name in sorted(config, key=order.index)}


def text(script_help: str, config: Mapping[str, Any] | None, config_file: str) -> str:
    """Returns the script's docstring, its flags and the fields of its configuration.

    Args:
      script_help: The docstring of the script.
      config: The configuration; None if the script has none.
      config_file: Its file.
    """
    parts = [script_help.strip(), "Flags:\n" + _table(_script_flags())]
    if config is not None:
        rows = [
            (f"--config.{field}={config[field]}", help_text)
            for field, help_text in texts(config, config_file).items()
        ]
        parts.append(
            f"Fields of the settings, {_shown_file(config_file)}:\n" + _table(rows)
        )
    return "\n\n".join(parts)


def _shown_file(config_file: str) -> str:
    """Returns the name to show for settings that are not the user's own file."""
    file, _, words = config_file.partition(":")
    if not words or words.endswith(".json"):
        return words or file
    name, _, environment = words.partition(",")
    name = name.removesuffix("+")
    return f"{name} for {environment or 'its usual environment'}"


def nearest(name: str, config: Mapping[str, Any] | None) -> str | None:
    """Returns the flag or field whose name is nearest to `name`; None if none is near.

    For a flag of another library, it is the flag that does the same.

    Args:
      name: The given name, without its dashes.
      config: The configuration; None if the script has none.
    """
    meant = {field: f"--config.{field}" for field in config or ()}
    if not name.startswith("config."):
        group = name.partition(".")[0] + "."
        meant |= {
            flag: f"--{flag}"
            for flag in flags.FLAGS
            if "." not in flag or flag.startswith(group)
        }
    given = name.removeprefix("config.").replace("-", "_")
    known = {*meant.values()}
    others = {other: f"--{ours}" for other, ours in _OF_OTHERS.items()}
    if given not in meant and others.get(given) in known:
        return others[given]
    # The environment has a field, and a flag with a shorter name.
    meant |= {"environment": "--env"} if "--env" in known else {}
    near = difflib.get_close_matches(given, meant, n=1)
    return meant[near[0]] if near else None


def _script_flags() -> list[tuple[str, str]]:
    """Returns the flags that the scripts define, without absl's and the fields'."""
    rows = []
    for module, defined in flags.FLAGS.flags_by_module_dict().items():
        if not module.startswith("absl"):
            rows += [(_shown(flag), flag.help) for flag in defined]
    return [row for row in rows if not row[0].startswith(("--config.", "--search."))]


def _shown(flag: flags.Flag) -> str:
    """Returns a flag as the user writes it, with its default if it has one."""
    if flag.boolean or flag.default is None or flag.name == "config":
        return f"--{flag.name}"
    return f"--{flag.name}={str(flag.default_as_str)[1:-1]}"


def _table(rows: Iterable[tuple[str, str]]) -> str:
    """Returns lines of two columns, the second one wrapped at the page's width."""
    rows = list(rows)
    width = max(len(left) for left, _ in rows)
    lines = []
    for left, right in rows:
        wrapped = textwrap.wrap(right, max(_WIDTH - width - 4, 24)) or [""]
        for first, line in zip([left, *[""] * len(wrapped)], wrapped, strict=False):
            lines.append(f"  {first:{width}}  {line}".rstrip())
    return "\n".join(lines)
