"""Trains DQN, R2D2, SAC, PPO or IMPALA with actors, replay servers and learners.

    python -m examples.train_distributed
    python -m examples.train_distributed --num_actors=4 --num_shards=2
    python -m examples.train_distributed --config=configs/distributed_sac.py
    python -m examples.train_distributed --config.agent=ppo --schedule=lockstep
    python -m examples.train_distributed --launcher=ray --address=auto
    python -m examples.train_distributed --launcher=command --address=10.0.0.5:9000

Each is a process of its own: on this host, on a cluster of Ray, or wherever you start
the commands that --launcher=command prints. The settings are in
configs/distributed_dqn.py, distributed_r2d2.py, distributed_sac.py, distributed_ppo.py
and distributed_impala.py; an iteration is an update. To resume a run that was
interrupted or killed, run the same command again. Watch it with
`tensorboard --logdir=logs`, and play the best policy with
`python -m examples.play --logdir=logs/dqn_distributed_CartPole-v1_0`. On one host one
process is often faster: see docs/distributed.md.
"""

from __future__ import annotations

import os
import pathlib
from typing import Any

from absl import flags

from tfrl import distribute
from tfrl.algorithms import distributed
from tfrl.command import actors, cli, runs
from tfrl.environments import suites

_SETTINGS = pathlib.Path(__file__).resolve().parent.parent / "configs" / "distributed_"
CONFIG = runs.define_config("dqn", os.path.relpath(_SETTINGS), only_with_actors=True)
_NUM_ACTORS = flags.DEFINE_integer(
    "num_actors", 2, "Processes that collect.", lower_bound=1
)
_NUM_SHARDS = flags.DEFINE_integer(
    "num_shards", 1, "Replay servers, which share the capacity.", lower_bound=1
)
_NUM_LEARNERS = flags.DEFINE_integer(
    "num_learners", 1, "Replicas of the learner, which share a batch.", lower_bound=1
)
_EVALUATOR = flags.DEFINE_bool(
    "evaluator", False, "Evaluate in a process of its own, beside the learner."
)
_LAUNCHER = flags.DEFINE_enum(
    "launcher",
    "local",
    ["local", "ray", "command"],
    "What starts the processes: this one, Ray, or you.",
)
_ADDRESS = flags.DEFINE_string(
    "address",
    None,
    "Of Ray's cluster: auto or host:port. With --launcher=command, the address of this "
    "host for the others, host:port.",
)
_SCHEDULE = flags.DEFINE_enum(
    "schedule",
    "free",
    ["free", "lockstep"],
    "lockstep gives the same run twice; ppo and impala only.",
)
_WHERE = {
    "local": "processes on this host",
    "ray": "processes on Ray's cluster",
    "command": "processes that you start by the commands below",
}


def main() -> None:
    """Trains the agent that the configuration names."""
    config = cli.read_config(CONFIG)
    suites.check_actors(config.env)
    with config.unlocked():  # A run that is resumed has the same ones.
        config.num_shards = _NUM_SHARDS.value
        config.schedule = _SCHEDULE.value
    host, port = _read_address()
    name = f"{cli.agent_name(config, distributed.ALGORITHMS)}_distributed"
    told = actors.text_of_processes(
        _NUM_ACTORS.value,
        _NUM_SHARDS.value,
        _NUM_LEARNERS.value,
        evaluator=_EVALUATOR.value,
        where=_WHERE[_LAUNCHER.value],
    )
    cli.prepare(name, config, told)
    settings = {"config": config.to_dict(), **runs.flag_values()}
    launcher = _make_launcher(settings, host, port)
    experiment = distributed.make_experiment(**settings)
    directory = cli.make_directory(name, config)
    result = distribute.run_distributed(
        experiment,
        directory,
        _NUM_ACTORS.value,
        config.num_iterations,
        num_shards=_NUM_SHARDS.value,
        num_learners=_NUM_LEARNERS.value,
        launcher=launcher,
        schedule=config.schedule,
        evaluator=_EVALUATOR.value,
    )
    cli.report(result, directory)


def _read_address() -> tuple[str, int | None]:
    """Returns the host and the port of --address, for --launcher=command.

    Raises:
      ValueError: The address does not suit the launcher.
    """
    address = _ADDRESS.value
    if _LAUNCHER.value == "local" and address is not None:
        raise ValueError(
            f"address: got {address!r} with --launcher=local, expected none; leave "
            "it out, or set --launcher to ray or command."
        )
    if _LAUNCHER.value != "command":
        return "", None
    host, _, port = (address or "localhost:0").rpartition(":")
    if not (host and port.isdecimal()):
        raise ValueError(
            f"address: got {address!r} with --launcher=command, expected host:port; "
            "give the address of this host for the others, such as 10.0.0.5:9000."
        )
    return host, int(port) or None


def _make_launcher(
    settings: dict[str, Any], host: str, port: int | None
) -> distribute.Launcher:
    """Makes the launcher that the flags name.

    Raises:
      ImportError: Ray is not installed.
    """
    if _LAUNCHER.value == "ray":
        return distribute.RayLauncher(_ADDRESS.value)
    if _LAUNCHER.value == "local":
        return distribute.LocalLauncher()
    return distribute.CommandLauncher(
        "tfrl.algorithms.distributed:make_experiment", settings, host=host, port=port
    )


if __name__ == "__main__":
    cli.start(main)
