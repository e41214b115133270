"""Finds the configuration whose settings are made for an environment."""

from __future__ import annotations

import pathlib
import re
import runpy

# The fields that configurations of earlier versions lack, with the values that give the
# behaviour of those versions.
LATER_FIELDS = {
    "adam_epsilon": 1e-7,
    "agent": "dqn",
    "burn_in_length": 0,
    "conv_layer_params": (),
    "dtype": "float32",
    "dueling": False,
    "frame_stack": 0,
    "goals_per_step": 0,
    "initial_log_stddev": 0.0,
    "max_gradient_norm": 0.0,
    "loss": "squared",
    "max_q_value": 200.0,
    "min_q_value": 0.0,
    "munchausen": False,
    "noisy_stddev": 0.0,
    "lstm_size": 0,
    "normalize_observations": False,
    "num_action_bins": 0,
    "num_atoms": 51,
    "num_quantiles": 32,
    "output_fc_layer_params": (),
    "priority_eta": 1.0,
    "trace_length": 0,
}

# The environments that a file `..._FAMILY.py` is made for, beside its own.
_FAMILIES = {
    "atari": re.compile(r"ALE/|\w+NoFrameskip-v"),
    "minigrid": re.compile(r"(MiniGrid|BabyAI)-"),
    "mujoco": re.compile(
        r"(Ant|HalfCheetah|Hopper|Humanoid|HumanoidStandup|InvertedDoublePendulum|"
        r"InvertedPendulum|Pusher|Reacher|Swimmer|Walker2d)-v\d+$"
    ),
}


def find(
    default: pathlib.Path, environment: str | None, agent: str | None = None
) -> pathlib.Path:
    """Returns the file made for an agent and an environment.

    This is `FAMILY_AGENT.py` if the default is in the same family, such as
    `distributed_dqn.py`, or else `AGENT.py`, or `AGENT_*.py` if that has the settings
    of the environment. Of several files for the same environment, the one with the
    shortest name counts.

    Args:
      default: The script's own configuration file; the others are beside it.
      environment: The environment's name; None for any.
      agent: The agent's name; None, or one that has no file, for the `default`'s.

    Returns:
      The file; `default` if there is none.
    """
    family = default.stem.rpartition("_")[0]
    for stem in (f"{family}_{agent}", agent):
        own = default.with_name(f"{stem}.py")
        if own.exists():
            default = own
            break
    if environment is None or environment_of(default) == environment:
        return default
    found = sorted(
        default.parent.glob(f"{default.stem}_*.py"), key=lambda path: len(path.name)
    )
    for path in found:
        if environment_of(path) == environment:
            return path
    for path in found:
        family = _FAMILIES.get(path.stem.removeprefix(f"{default.stem}_"))
        if family and family.match(environment):
            return path
    return default


def environment_of(path: pathlib.Path) -> str | None:
    """Returns the environment of a configuration file, if it has one."""
    env: str | None = runpy.run_path(str(path))["get_config"]().get("env")
    return env
