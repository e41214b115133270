"""Trains rows of the score table with other libraries, to compare at equal steps.

    python -m benchmarks.score_peers               # all missing runs
    python -m benchmarks.score_peers --only=ppo_ppo --seeds=3

Stable-Baselines3 trains in environments, d3rlpy on recordings. They need the peers'
environments: `python -m benchmarks.peers torch d3rlpy`. Each run has an entry's
settings, steps and seed, in its own process with one thread. Its row in
benchmarks/score_peers.csv holds the mean return of 50 greedy episodes of its final
weights, and the processor time of its start and training. `python -m benchmarks.scores
--table` then shows it on the page.
"""

from __future__ import annotations

import argparse
import csv
import dataclasses
import json
import os
import pathlib
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from benchmarks import peers, score_recordings
from benchmarks.score_entries import ENTRIES, RECORDINGS, ROOT, Entry
from tfrl.compilation import processors
from tfrl.eval import statistics

CSV = ROOT / "benchmarks" / "score_peers.csv"
_WORKERS = ROOT / "benchmarks" / "workers"
_FIELDS = (
    "agent",
    "environment",
    "preset",
    "config_hash",
    "seed",
    "steps",
    "return",
    "seconds",
    "processor",
    "versions",
)
# The entries that are compared, by their names.
COMPARED = (
    "dqn_dqn_acrobot",
    "dqn_dqn_mountain_car",
    "ppo_ppo",
    "ppo_ppo_pendulum",
    "a2c_a2c",
    "sac_sac",
    "td3_td3",
    "ppo_ppo_mujoco_halfcheetah-v5",
    "sac_sac_mujoco_hopper-v5",
    "sac_for_100,000_steps_sac_mujoco_halfcheetah-v5",
    "td3+bc_on_replay_td3_bc_mujoco_halfcheetah-v5",
    "iql_on_replay_iql_mujoco_halfcheetah-v5",
    "td3+bc_on_replay_td3_bc_mujoco_hopper-v5",
    "iql_on_replay_iql_mujoco_hopper-v5",
    "td3+bc_on_episodes_td3_bc_mujoco_hopper-v5",
    "ippo_ppo_pettingzoo/simple_spread_v3",
    "ippo_ppo_pettingzoo/simple_speaker_listener_v4",
    "bc_offline_cartpole-v1",
    "cql_offline_cartpole-v1",
    "bc_offline_lunarlander-v3",
    "cql_offline_lunarlander-v3",
)
_ONE_THREAD = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
_HEAD = """## Beside other libraries

Other libraries train with the same settings and steps. On recordings, they learn from the
same frames, and steps are updates. Seconds are the processor time of one run with one
thread, including its start. Those of tfrl also include evaluations during the run; those
of the other libraries do not. Seconds are shown only where both libraries ran on the same
kind of processor, beside other work, and the rows of tfrl have processor times.

| agent | environment | other library | steps | return of tfrl | return of the other | seeds | seconds of tfrl | seconds of the other | ratio |
|---|---|---|---|---|---|---|---|---|---|"""  # noqa: E501
_TAIL = """
Returns are interquartile means. `python -m benchmarks.score_peers` trains these runs;
they are in `benchmarks/score_peers.csv`. An agent whose settings a library lacks has no
row: Stable-Baselines3, for example, has neither prioritized replay nor double
Q-learning. The learning rate of IQL's actor falls to 0 along a cosine in d3rlpy, and
linearly in tfrl. d3rlpy's CQL of one choice copies the network to its target where
tfrl's target follows by a small step in each update; it is copied as often as such
steps make a whole. SuperSuit makes PettingZoo's agents a batch for
Stable-Baselines3; it pads observations and actions, without masks."""


@dataclasses.dataclass(frozen=True)
class Library:
    """A library that can train some entries.

    Attributes:
      name: Its name for readers.
      peer: The name of its Python environment.
      worker: The script that trains a task.
      makers: The functions from settings to tasks, by the names of algorithms.
    """

    name: str
    peer: str
    worker: str
    makers: Mapping[str, Callable[[Mapping[str, Any]], dict[str, Any]]]


def task(entry: Entry) -> dict[str, Any]:
    """Returns what the worker needs to train an entry, valid in JSON.

    Raises:
      ValueError: Its library lacks the algorithm or one of the entry's settings.
    """
    s = entry.settings()
    make = library_of(entry).makers[entry.algorithm]
    return {"environment": s["env"], **make(s)}


def library_of(entry: Entry) -> Library:
    """Returns the library that trains an entry.

    Raises:
      ValueError: None has its algorithm.
    """
    for library in _LIBRARIES:
        if entry.algorithm in library.makers:
            return library
    names = ", ".join(name for library in _LIBRARIES for name in library.makers)
    raise ValueError(f"{entry.name}: expected an algorithm of {names}")


def _refuse(s: Mapping[str, Any], **expected: Any) -> None:
    """Raises a ValueError unless settings have the only value that can be compared."""
    for name, value in expected.items():
        if s[name] != value:
            raise ValueError(f"{name}: got {s[name]}, expected {value}")


def _rollouts(s: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the task of PPO or A2C."""
    _refuse(s, lstm_size=0)
    frames = s["collect_steps_per_iteration"] * s["num_envs"]
    arguments = {
        "n_steps": s["collect_steps_per_iteration"],
        "learning_rate": _falling(s["learning_rate"], s["final_learning_rate"] == 0),
        "gamma": s["gamma"],
        "gae_lambda": s["lambda_value"],
        "ent_coef": s["entropy_regularization"],
        "vf_coef": s["value_loss_weight"],
        "max_grad_norm": s["max_gradient_norm"] or None,
        "normalize_advantage": s["normalize_advantages"],
        "use_sde": s["gsde_sample_freq"] > 0,
        "sde_sample_freq": s["gsde_sample_freq"] or -1,
    }
    if s["algorithm"] == "a2c":
        _refuse(s, num_epochs=1, minibatch_size=0)
        arguments["use_rms_prop"] = False
    else:
        _refuse(s, value_clip_range=0.0, target_kl=0.0)
        arguments |= {
            "n_epochs": s["num_epochs"],
            "batch_size": s["minibatch_size"] or frames,
            "clip_range": _falling(s["clip_range"], s["final_clip_range"] == 0),
        }
    layers = list(s["fc_layer_params"])
    policy = {"net_arch": {"pi": layers, "vf": layers}, "activation": s["activation"]}
    if s["initial_log_stddev"]:
        policy["log_std_init"] = s["initial_log_stddev"]
    return {
        "algorithm": s["algorithm"].upper(),
        "num_envs": s["num_envs"],
        "steps": s["num_iterations"] * frames,
        "normalized": [s["normalize_observations"], s["normalize_rewards"]],
        "arguments": arguments,
        "policy": policy,
    }


def _replay(s: Mapping[str, Any], **arguments: Any) -> dict[str, Any]:
    """Returns what the tasks of all agents that learn from replay share."""
    _refuse(s, replay="uniform", n_step_update=1, num_envs=1)
    _refuse(s, normalize_observations=False)
    return {
        "algorithm": s["algorithm"].upper(),
        "num_envs": s["num_envs"],
        "steps": s["initial_collect_steps"]
        + s["num_iterations"] * s["collect_steps_per_iteration"],
        "arguments": {
            "learning_starts": s["initial_collect_steps"],
            "train_freq": s["collect_steps_per_iteration"],
            "gradient_steps": s["train_steps_per_iteration"],
            "buffer_size": s["replay_capacity"],
            "batch_size": s["batch_size"],
            "gamma": s["gamma"],
            "tau": s["target_update_tau"],
            **arguments,
        },
    }


def _dqn(s: Mapping[str, Any]) -> dict[str, Any]:
    _refuse(s, dueling=False, noisy_stddev=0.0, loss="huber")
    _refuse(s, final_learning_rate=None, munchausen=False)
    decay = s["epsilon_decay_iterations"] * s["collect_steps_per_iteration"]
    made = _replay(
        s,
        learning_rate=s["learning_rate"],
        # Stable-Baselines3 counts steps here, and updates in SAC.
        target_update_interval=s["target_update_period"]
        * s["collect_steps_per_iteration"]
        // s["train_steps_per_iteration"],
        exploration_initial_eps=s["initial_epsilon"],
        exploration_final_eps=s["final_epsilon"],
        max_grad_norm=s["max_gradient_norm"] or float(np.finfo(np.float32).max),
    )
    start = s["initial_collect_steps"]
    made["arguments"]["exploration_fraction"] = (start + decay) / made["steps"]
    return {**made, "policy": {"net_arch": list(s["fc_layer_params"])}}


def _sac(s: Mapping[str, Any]) -> dict[str, Any]:
    rate = s["critic_learning_rate"]
    _refuse(s, actor_learning_rate=rate, alpha_learning_rate=rate, num_critics=2)
    _refuse(s, final_learning_rate=None, gsde_sample_freq=0, ou_stddev=0.0)
    _refuse(s, initial_alpha=1.0, target_entropy_per_dimension=-1.0)
    made = _replay(
        s,
        learning_rate=rate,
        target_update_interval=s["target_update_period"],
    )
    layers = {
        "pi": list(s["actor_fc_layer_params"]),
        "qf": list(s["critic_fc_layer_params"]),
    }
    return {**made, "policy": {"net_arch": layers}}


def _td3(s: Mapping[str, Any]) -> dict[str, Any]:
    rate = s["critic_learning_rate"]
    _refuse(s, actor_learning_rate=rate, target_update_period=s["actor_update_period"])
    made = _replay(
        s,
        learning_rate=rate,
        policy_delay=s["actor_update_period"],
        target_policy_noise=s["target_policy_noise"],
        target_noise_clip=s["target_policy_noise_clip"],
    )
    policy = {"net_arch": list(s["fc_layer_params"])}
    return {**made, "policy": policy, "action_noise": s["exploration_noise"]}


def _recorded(s: Mapping[str, Any], algorithm: str, **arguments: Any) -> dict[str, Any]:
    """Returns the task of an agent that learns from a recording."""
    _refuse(s, train_steps_per_iteration=1)
    return {
        "algorithm": algorithm,
        "steps": s["num_iterations"],
        "data": s["data"],
        "layers": list(s["fc_layer_params"]),
        "is_normalized": s["normalize_observations"],
        "reward_scale": s.get("reward_scale", 1.0),
        "arguments": {"batch_size": s["batch_size"], **arguments},
    }


def _with_critics(
    s: Mapping[str, Any], algorithm: str, **arguments: Any
) -> dict[str, Any]:
    """Returns the task of an actor and critics that learn from a recording."""
    _refuse(s, online_share=0.0)
    rates = {
        f"{name}_learning_rate": s["learning_rate"] for name in ("actor", "critic")
    }
    return _recorded(
        s,
        algorithm,
        gamma=s["gamma"],
        tau=s["target_update_tau"],
        **rates,
        **arguments,
    )


def _td3_bc(s: Mapping[str, Any]) -> dict[str, Any]:
    return _with_critics(s, "TD3PlusBC", alpha=s["bc_alpha"])  # The rest is the same.


def _iql(s: Mapping[str, Any]) -> dict[str, Any]:
    _refuse(s, final_actor_learning_rate=0.0)  # d3rlpy's falls to 0 along a cosine.
    expectile, weight = s["expectile"], s["inverse_temperature"]
    return _with_critics(s, "IQL", expectile=expectile, weight_temp=weight)


def _cql(s: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the task of CQL for one choice, whose target is copied, not moved."""
    _refuse(s, online_share=0.0)
    return _recorded(
        s,
        "DiscreteCQL",
        learning_rate=s["learning_rate"],
        gamma=s["gamma"],
        alpha=s["cql_alpha"],
        target_update_interval=round(1 / s["target_update_tau"]),
    )


def _bc(s: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the task of behavioural cloning of one choice, without a penalty."""
    return _recorded(s, "DiscreteBC", learning_rate=s["learning_rate"], beta=0.0)


_LIBRARIES = (
    Library(
        "Stable-Baselines3",
        "torch",
        "score_with_torch.py",
        {"ppo": _rollouts, "a2c": _rollouts, "dqn": _dqn, "sac": _sac, "td3": _td3},
    ),
    Library(
        "d3rlpy",
        "d3rlpy",
        "score_with_d3rlpy.py",
        {"td3_bc": _td3_bc, "iql": _iql, "cql": _cql, "bc": _bc},
    ),
)


def _falling(value: float, is_annealed: bool) -> float | list[float]:
    """Returns a number, or `[number]` where it falls linearly to 0."""
    return [value] if is_annealed else value


def read_rows(path: pathlib.Path = CSV) -> list[dict[str, str]]:
    """Returns the rows, as text."""
    if not path.exists():
        return []
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def train(entry: Entry, seed: int) -> dict[str, str]:
    """Trains an entry with its library; returns the row.

    Raises:
      PeerError: The library's Python environment is missing.
      RuntimeError: The run failed.
    """
    library = library_of(entry)
    python = peers.installed_python(library.peer)
    made = task(entry)
    with tempfile.TemporaryDirectory() as folder:
        if "data" in made:
            made["data"] = _write_steps(made["data"], pathlib.Path(folder))
        result = subprocess.run(
            [str(python), str(_WORKERS / library.worker), json.dumps(made), str(seed)],
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, **_ONE_THREAD},
        )
    if result.returncode:
        raise RuntimeError(f"{entry.name}, seed {seed}: {result.stderr[-2000:]}")
    found = json.loads(result.stdout.splitlines()[-1])
    return {
        "agent": entry.agent,
        "environment": entry.environment,
        "preset": entry.preset,
        "config_hash": entry.hash(),
        "seed": str(seed),
        "steps": str(made["steps"]),
        "return": f"{found['return']:.1f}",
        "seconds": f"{found['seconds']:.0f}",
        "processor": processors.description(),
        "versions": found["versions"],
    }


def _write_steps(source: str, folder: pathlib.Path) -> str:
    """Writes the steps of a recording, made if it is missing; returns the file."""
    (recording,) = (each for each in RECORDINGS if each.source == source)
    if not recording.path.exists():
        score_recordings.make(recording, lambda: False)
    path = folder / "steps.npz"
    steps: dict[str, Any] = {**score_recordings.steps_of(recording)}
    np.savez(path, **steps)
    return str(path)


def section(
    rows: Sequence[Mapping[str, str]], peer_rows: Sequence[Mapping[str, str]]
) -> str:
    """Returns the section of the page; empty if nothing was compared.

    Args:
      rows: The rows of the score table.
      peer_rows: The rows of the other libraries.
    """
    lines = []
    for entry in ENTRIES:
        own = [row for row in rows if entry.has(row)]
        peer = [row for row in peer_rows if entry.has(row)]
        if not own or not peer:
            continue
        returns = [[float(row["return"]) for row in group] for group in (own, peer)]
        means = [statistics.summarize(r).interquartile_mean for r in returns]
        cells = (
            *(entry.agent, entry.environment, library_of(entry).name),
            f"{int(peer[0]['steps']):,}",
            *(f"{mean:.1f}" for mean in means),
            f"{len(own)}, {len(peer)}",
            *_seconds(own, peer),
        )
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join([_HEAD, *lines, _TAIL]) if lines else ""


def _seconds(
    own: Sequence[Mapping[str, str]], peer: Sequence[Mapping[str, str]]
) -> tuple[str, str, str]:
    """Returns the seconds of both and their ratio, or blanks.

    They are of the rows with processor times, on processors that both ran on.
    """
    own = [row for row in own if row["processor_seconds"]]
    shared = {row["processor"] for row in own} & {row["processor"] for row in peer}
    if not shared:
        return "", "", ""
    ours, theirs = (
        float(np.median([float(r[name]) for r in group if r["processor"] in shared]))
        for group, name in ((own, "processor_seconds"), (peer, "seconds"))
    )
    return f"{ours:.0f}", f"{theirs:.0f}", f"{theirs / ours:.1f}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Trains the runs that have no row; returns the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.score_peers",
        description=__doc__.partition("\n")[0],
    )
    parser.add_argument("--only", choices=COMPARED, help="an entry")
    parser.add_argument("--seeds", type=int, default=3, help="runs of each entry")
    options = parser.parse_args(arguments)
    named = {entry.name: entry for entry in ENTRIES}
    rows = read_rows()
    for seed in range(options.seeds):
        for name in COMPARED if options.only is None else (options.only,):
            entry = named[name]
            if any(entry.has(row) and row["seed"] == str(seed) for row in rows):
                continue
            row = train(entry, seed)
            rows.append(row)
            with open(CSV, "w", newline="", encoding="utf-8") as file:
                writer = csv.DictWriter(file, _FIELDS, lineterminator="\n")
                writer.writeheader()
                writer.writerows(rows)
            print(f"{name}, seed {seed}: {row['return']} in {row['seconds']} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
