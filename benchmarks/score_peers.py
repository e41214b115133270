"""Trains rows of the score table with Stable-Baselines3, to compare at equal steps.

    python -m benchmarks.score_peers               # all missing runs
    python -m benchmarks.score_peers --only=ppo_ppo --seeds=3

It needs the peers' environment "torch": `python -m benchmarks.peers torch`. Each run
has an entry's settings, steps and seed, in its own process with one thread. Its row in
benchmarks/score_peers.csv holds the mean return of 50 greedy episodes of its final
weights, and the processor time of its start and training. `python -m benchmarks.scores
--table` then shows it on the page.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import pathlib
import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from benchmarks import peers
from benchmarks.score_entries import ENTRIES, ROOT, Entry
from tfrl.compilation import processors
from tfrl.eval import statistics

CSV = ROOT / "benchmarks" / "score_peers.csv"
_WORKER = ROOT / "benchmarks" / "workers" / "score_with_torch.py"
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
)
_ONE_THREAD = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
_HEAD = """## Beside Stable-Baselines3

Stable-Baselines3 with the same settings and steps. Seconds are the processor time of
one run with one thread, including its start; those of tfrl also include evaluations
during the run, those of Stable-Baselines3 none. Seconds are shown only
where both libraries ran on the same kind of processor, beside other work, and the rows
of tfrl have processor times.

| agent | environment | steps | tfrl | Stable-Baselines3 | seeds | seconds of tfrl | seconds of Stable-Baselines3 | ratio |
|---|---|---|---|---|---|---|---|---|"""  # noqa: E501
_TAIL = """
Returns are interquartile means. `python -m benchmarks.score_peers` trains these runs;
they are in `benchmarks/score_peers.csv`. Settings that Stable-Baselines3 lacks are left
out: prioritized replay, double Q-learning and others have no row."""


def task(entry: Entry) -> dict[str, Any]:
    """Returns what the worker needs to train an entry, valid in JSON.

    Raises:
      ValueError: Stable-Baselines3 lacks one of the entry's settings.
    """
    s = entry.settings()
    made = _MAKERS.get(entry.algorithm)
    if made is None:
        names = ", ".join(_MAKERS)
        raise ValueError(f"{entry.name}: expected an algorithm of {names}")
    number = int(s["num_iterations"])
    return {"environment": s["env"], "num_envs": s["num_envs"], **made(s, number)}


def _refuse(s: Mapping[str, Any], **expected: Any) -> None:
    """Raises a ValueError unless settings have the only value that can be compared."""
    for name, value in expected.items():
        if s[name] != value:
            raise ValueError(f"{name}: got {s[name]}, expected {value}")


def _rollouts(s: Mapping[str, Any], num_iterations: int) -> dict[str, Any]:
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
            "clip_range": _falling(s["clip_range"], s["anneal_clip_range"]),
        }
    layers = list(s["fc_layer_params"])
    policy = {"net_arch": {"pi": layers, "vf": layers}, "activation": s["activation"]}
    if s["initial_log_stddev"]:
        policy["log_std_init"] = s["initial_log_stddev"]
    return {
        "algorithm": s["algorithm"].upper(),
        "steps": num_iterations * frames,
        "normalized": [s["normalize_observations"], s["normalize_rewards"]],
        "arguments": arguments,
        "policy": policy,
    }


def _replay(s: Mapping[str, Any], num_iterations: int, **arguments: Any) -> dict:
    """Returns what the tasks of all agents that learn from replay share."""
    _refuse(s, replay="uniform", n_step_update=1, num_envs=1)
    _refuse(s, normalize_observations=False)
    return {
        "algorithm": s["algorithm"].upper(),
        "steps": s["initial_collect_steps"]
        + num_iterations * s["collect_steps_per_iteration"],
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


def _dqn(s: Mapping[str, Any], num_iterations: int) -> dict[str, Any]:
    _refuse(s, dueling=False, noisy_stddev=0.0, loss="huber")
    _refuse(s, final_learning_rate=None, munchausen=False)
    decay = s["epsilon_decay_iterations"] * s["collect_steps_per_iteration"]
    made = _replay(
        s,
        num_iterations,
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


def _sac(s: Mapping[str, Any], num_iterations: int) -> dict[str, Any]:
    rate = s["critic_learning_rate"]
    _refuse(s, actor_learning_rate=rate, alpha_learning_rate=rate, num_critics=2)
    _refuse(s, final_learning_rate=None, gsde_sample_freq=0, ou_stddev=0.0)
    _refuse(s, initial_alpha=1.0, target_entropy_per_dimension=-1.0)
    made = _replay(
        s,
        num_iterations,
        learning_rate=rate,
        target_update_interval=s["target_update_period"],
    )
    layers = {
        "pi": list(s["actor_fc_layer_params"]),
        "qf": list(s["critic_fc_layer_params"]),
    }
    return {**made, "policy": {"net_arch": layers}}


def _td3(s: Mapping[str, Any], num_iterations: int) -> dict[str, Any]:
    rate = s["critic_learning_rate"]
    _refuse(s, actor_learning_rate=rate, target_update_period=s["actor_update_period"])
    made = _replay(
        s,
        num_iterations,
        learning_rate=rate,
        policy_delay=s["actor_update_period"],
        target_policy_noise=s["target_policy_noise"],
        target_noise_clip=s["target_policy_noise_clip"],
    )
    policy = {"net_arch": list(s["fc_layer_params"])}
    return {**made, "policy": policy, "action_noise": s["exploration_noise"]}


_MAKERS = {"ppo": _rollouts, "a2c": _rollouts, "dqn": _dqn, "sac": _sac, "td3": _td3}


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
    """Trains an entry with Stable-Baselines3; returns the row.

    Raises:
      PeerError: The peer's environment is missing.
      RuntimeError: The run failed.
    """
    python = peers.installed_python("torch")
    made = task(entry)
    result = subprocess.run(
        [str(python), str(_WORKER), json.dumps(made), str(seed)],
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


def section(
    rows: Sequence[Mapping[str, str]], peer_rows: Sequence[Mapping[str, str]]
) -> str:
    """Returns the section of the page; empty if nothing was compared.

    Args:
      rows: The rows of the score table.
      peer_rows: The rows of Stable-Baselines3.
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
            *(entry.agent, entry.environment, f"{int(peer[0]['steps']):,}"),
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
