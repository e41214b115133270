"""Trains the runs of the score table that are missing, and writes the table.

    python -m benchmarks.scores
    python -m benchmarks.scores --only=SAC --processes=2
    python -m benchmarks.scores --table

Each run is an ordinary run of an example, in a process of its own with one thread. Its
score is the mean return of greedy episodes of its final weights. A row of
benchmarks/scores.csv is written when its run ends, so an interrupted command goes on
where it was, and a run is trained again only if its configuration has changed. At the
end docs/scores.md is made from the rows, and pictures of the learning curves in
docs/scores from the outputs of the runs; --table does only that.
"""

from __future__ import annotations

import argparse
import csv
import dataclasses
import os
import pathlib
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence

from benchmarks import processors, score_table
from benchmarks.score_table import LOGS, ROOT, Entry
from examples import cli
from tfrl.system import interrupts, jobs, quiet

CSV = ROOT / "benchmarks" / "scores.csv"
_FIELDS = (
    "agent",
    "environment",
    "config",
    "seed",
    "steps",
    "return",
    "episodes",
    "seconds",
    "config_hash",
    "commit",
    "processor",
)
_ONE_THREAD = {
    "OMP_NUM_THREADS": "1",
    "TF_NUM_INTRAOP_THREADS": "1",
    "TF_NUM_INTEROP_THREADS": "1",
}


# The replay of a SAC that has seen 50,000 steps, and learned from few of them.
RECORDING = LOGS / "half_trained_sac" / "replay.tfrecord"
HALF_TRAINED = (
    "--config=configs/sac.py",
    "--config.initial_collect_steps=2000",
    "--config.collect_steps_per_iteration=16",
    "--config.replay_capacity=50000",
    "--num_iterations=3000",
    f"--logdir={RECORDING.parent.relative_to(ROOT)}",
)

_ZOO = "rl-zoo3, one run"
_ZOO_LONG = "rl-zoo3, one run of 300,000 steps"
_ZOO_TWICE = "rl-zoo3, one run of 1,000,000 steps"
_ZOO_REACH = "rl-zoo3, one run of FetchReach-v1"
_ZOO_V2 = "rl-zoo3, one run of LunarLander-v2"
_CLEAN_RL = "CleanRL, 3 runs"
_AS_C51 = "DQN as C51"  # With the settings and the budget of C51.
_DQN = ("--config.agent=dqn",)
# What leaves out one part of Rainbow.
_WITHOUT = {
    "distributions": _DQN,
    "double Q-learning": ("--config.double_q=False",),
    "dueling": ("--config.dueling=False",),
    "noise": (
        "--config.noisy_stddev=0.0",
        "--config.initial_epsilon=1.0",
        "--config.final_epsilon=0.05",
    ),
    "n-step returns": ("--config.n_step_update=1",),
    "priorities": ("--config.replay=uniform",),
}
_HINDSIGHT = "DQN with hindsight"
_NO_HINDSIGHT = ("--config.goals_per_step=0",)
_CART_POLE = ("--env=CartPole-v1",)
_DDPG = ("--config.agent=ddpg",)
_HOPPER = ("--num_iterations=40000",)
_DATA = f"--config.data={RECORDING.relative_to(ROOT)}"
_OFFLINE = "configs/offline.py"
_CQL, _BC = "--config.agent=cql", "--config.agent=bc"
ENTRIES = (
    Entry("DQN", "train_dqn", "configs/dqn.py", 32, 500, _ZOO),
    Entry("Prioritized DQN", "train_dqn", "configs/dqn_prioritized.py", 32, 500, _ZOO),
    Entry("DQN", "train_dqn", "configs/dqn_acrobot.py", 5, -76.6, _ZOO),
    Entry("DQN", "train_dqn", "configs/dqn_mountain_car.py", 5, -100.8, _ZOO),
    Entry("DQN", "train_dqn", "configs/dqn_lunar_lander.py", 3, 154.4, _ZOO_V2),
    Entry("C51", "train_dqn", "configs/c51.py", 5, 481.2, _CLEAN_RL),
    Entry("C51", "train_dqn", "configs/c51_acrobot.py", 5, -87.7, _CLEAN_RL),
    Entry("C51", "train_dqn", "configs/c51_mountain_car.py", 5, -166.4, _CLEAN_RL),
    Entry(_AS_C51, "train_dqn", "configs/c51.py", 5, 488.7, _CLEAN_RL, _DQN),
    Entry(_AS_C51, "train_dqn", "configs/c51_acrobot.py", 5, -91.5, _CLEAN_RL, _DQN),
    Entry(
        _AS_C51, "train_dqn", "configs/c51_mountain_car.py", 5, -195.0, _CLEAN_RL, _DQN
    ),
    Entry("QR-DQN", "train_dqn", "configs/qr_dqn.py", 5, 500, _ZOO),
    Entry("QR-DQN", "train_dqn", "configs/qr_dqn_acrobot.py", 5, -69.1, _ZOO),
    Entry("QR-DQN", "train_dqn", "configs/qr_dqn_mountain_car.py", 5, -106, _ZOO),
    Entry("QR-DQN", "train_dqn", "configs/qr_dqn_lunar_lander.py", 3, 70.2, _ZOO_V2),
    Entry(_HINDSIGHT, "train_dqn", "configs/dqn_bit_flipping_to_ones.py", 3),
    Entry(_HINDSIGHT, "train_dqn", "configs/dqn_bit_flipping.py", 3),
    Entry("DQN", "train_dqn", "configs/dqn_bit_flipping.py", 3, flags=_NO_HINDSIGHT),
    Entry("IQN", "train_dqn", "configs/iqn.py", 5),
    Entry("Rainbow", "train_dqn", "configs/rainbow.py", 5),
    *(
        Entry(f"Rainbow without {it}", "train_dqn", "configs/rainbow.py", 5, flags=off)
        for it, off in _WITHOUT.items()
    ),
    Entry("R2D2", "train_dqn", "configs/r2d2.py", 3),
    Entry("REINFORCE", "train_reinforce", "configs/reinforce.py", 5, flags=_CART_POLE),
    Entry("Discrete SAC", "train_sac", "configs/discrete_sac.py", 32),
    Entry("PPO", "train_ppo", "configs/ppo.py", 32, 500, _ZOO),
    Entry("A2C", "train_ppo", "configs/a2c.py", 32, 500, _ZOO),
    Entry("IMPALA", "train_impala", "configs/impala.py", 32),
    Entry("PPO", "train_ppo", "configs/ppo_acrobot.py", 5, -73.5, _ZOO_TWICE),
    Entry("PPO", "train_ppo", "configs/ppo_pendulum.py", 5, -172, _ZOO),
    Entry("PPO", "train_ppo", "configs/ppo_lunar_lander.py", 3, 242, _ZOO_V2),
    Entry("Recurrent PPO", "train_ppo", "configs/ppo_cartpole_memory.py", 3, 500, _ZOO),
    Entry(
        "Recurrent PPO", "train_ppo", "configs/ppo_pendulum_memory.py", 3, -217.9, _ZOO
    ),
    Entry("PQN", "train_pqn", "configs/pqn.py", 32, 495.1, _CLEAN_RL),
    Entry("PQN", "train_pqn", "configs/pqn_acrobot.py", 5, -95.6, _CLEAN_RL),
    Entry("SAC", "train_sac", "configs/sac.py", 5, -157, _ZOO),
    Entry("TD3", "train_td3", "configs/td3.py", 5, -152, _ZOO),
    Entry("DDPG", "train_td3", "configs/td3.py", 5, -152, _ZOO, _DDPG),
    Entry("D4PG", "train_d4pg", "configs/d4pg.py", 5),
    Entry("D4PG", "train_d4pg", "configs/d4pg_cartpole.py", 5),
    Entry("DMPO", "train_dmpo", "configs/dmpo.py", 5),
    Entry("MPO", "train_dmpo", "configs/mpo.py", 5),
    Entry("SAC", "train_sac", "configs/sac_mountain_car.py", 5, 94.7, _ZOO),
    Entry("DDPG", "train_td3", "configs/td3_mountain_car.py", 5, 93.5, _ZOO_LONG),
    Entry(
        "TQC with hindsight",
        "train_sac",
        "configs/sac_fetch_reach.py",
        3,
        -1.66,
        _ZOO_REACH,
    ),
    Entry("SAC", "train_sac", "configs/sac_mujoco.py", 1, flags=_HOPPER),
    Entry("IQL", "train_offline", _OFFLINE, 5, -1134.7, "the data", (_DATA,)),
    Entry("CQL", "train_offline", _OFFLINE, 5, -1134.7, "the data", (_CQL, _DATA)),
    Entry("BC", "train_offline", _OFFLINE, 5, -1134.7, "the data", (_BC, _DATA)),
)


@dataclasses.dataclass(frozen=True)
class Run:
    """One run of an entry."""

    entry: Entry
    seed: int

    @property
    def folder(self) -> pathlib.Path:
        """Where its outputs are."""
        return self.entry.folder(self.seed)

    @property
    def output(self) -> pathlib.Path:
        """Where what it prints is."""
        return self.folder / "output.txt"

    def flags(self) -> list[str]:
        """Returns the flags of its example."""
        return [
            f"--config={ROOT / self.entry.config}",
            f"--seed={self.seed}",
            f"--logdir={self.folder}",
            *self.entry.flags,
        ]

    def key(self) -> tuple[str, str, str, str]:
        """What identifies its row."""
        entry = self.entry
        return entry.agent, entry.config, entry.hash(), str(self.seed)


def read_rows(path: pathlib.Path = CSV) -> list[dict[str, str]]:
    """Returns the rows of the table, as text."""
    if not path.exists():
        return []
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def _key(row: dict[str, str]) -> tuple[str, str, str, str]:
    return row["agent"], row["config"], row["config_hash"], row["seed"]


def _is_same_run(row: dict[str, str], other: dict[str, str]) -> bool:
    return all(row[name] == other[name] for name in ("agent", "config", "seed"))


def write_rows(rows: Iterable[dict[str, str]], path: pathlib.Path = CSV) -> None:
    """Writes the table, in the order of the entries and seeds."""
    order = [(entry.agent, entry.config) for entry in ENTRIES]

    def place(row: dict[str, str]) -> tuple[int, int]:
        name = row["agent"], row["config"]
        return order.index(name) if name in order else len(order), int(row["seed"])

    partial = path.with_suffix(".partial")
    with open(partial, "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, _FIELDS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(sorted(rows, key=place))
    os.replace(partial, path)


def missing(entries: Sequence[Entry], rows: Iterable[dict[str, str]]) -> Iterator[Run]:
    """Yields the runs of the entries that have no row with their configuration."""
    done = {_key(row) for row in rows}
    for entry in entries:
        for seed in range(entry.num_seeds):
            run = Run(entry, seed)
            if run.key() not in done:
                yield run


def current_commit() -> str:
    """Returns the commit of the code, with `+` if what is trained differs from it.

    Raises:
      RuntimeError: The folder is no git repository.
    """
    commit = _git("rev-parse", "--short=7", "HEAD")
    if commit.returncode != 0:
        raise RuntimeError(
            f"{ROOT} is no git repository, and a row names its commit: clone it to "
            f"make the table. git said: {commit.stderr.strip()}"
        )
    changes = _git("diff", "--quiet", "HEAD", "--", "tfrl", "examples", "configs")
    return commit.stdout.strip() + "+" * changes.returncode


def _git(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["git", *words], cwd=ROOT, capture_output=True, text=True, check=False
    )


def score(run: Run, commit: str) -> dict[str, str]:
    """Plays greedy episodes of a run's final weights; returns its row.

    Args:
      run: The run, which has ended.
      commit: The commit of the code that trained it.
    """
    import tensorflow as tf  # Not at the top: --table does not wait for it.

    from tfrl import environments
    from tfrl import eval as evaluation

    name = run.entry.settings()["env"]
    native = environments.native
    if name in native.names() or native.bit_flipping.is_task(name):
        episodes = 1000
        environment = native.load(name, episodes, seed=123_456)
    else:
        episodes = 20 if environments.suite_dm_control.is_task(name) else 50
        environment = cli.make_environment(name, episodes, 123_456)
    policy = tf.saved_model.load(str(run.folder / "final_policy"))
    result = evaluation.Evaluator(environment, policy, episodes, 123_456).run()
    with open(run.folder / "metrics.csv", newline="", encoding="utf-8") as file:
        last = list(csv.DictReader(file))[-1]
    return {
        "agent": run.entry.agent,
        "environment": name,
        "config": run.entry.config,
        "seed": str(run.seed),
        "steps": str(score_table.steps_of(last)),
        "return": f"{result.mean:.1f}",
        "episodes": str(episodes),
        "seconds": f"{float(last['training_seconds']):.0f}",
        "config_hash": run.entry.hash(),
        "commit": commit,
        "processor": processors.description(),
    }


def make_recording(is_stopped: Callable[[], bool]) -> None:
    """Trains SAC half, and records its replay.

    Raises:
      RuntimeError: One of the two failed, or was stopped.
    """
    folder = RECORDING.parent
    unfinished = folder / "unfinished.tfrecord"
    record = ("--replay", f"--logdir={folder}", f"--output={unfinished}")
    output = folder / "output.txt"
    for module, flags in (("train_sac", HALF_TRAINED), ("record", record)):
        job = jobs.Job(f"examples.{module}", flags, output)
        if jobs.run_all([job], 1, is_stopped, lambda *_: None) != [0]:
            raise RuntimeError(
                f"{module} made no recording; the end of {output} says why. The same "
                "command tries it again."
            )
    os.replace(f"{unfinished}.spec", f"{RECORDING}.spec")
    os.replace(unfinished, RECORDING)


def train(runs: Sequence[Run], processes: int, rows: list[dict[str, str]]) -> None:
    """Trains and scores the runs, and writes each row when its run has ended.

    Raises:
      KeyboardInterrupt: Ctrl-C or SIGTERM came; the runs have saved checkpoints.
      RuntimeError: A run failed.
    """
    os.environ.update(_ONE_THREAD)
    commit = current_commit()
    failed = []

    def ended(number: int, status: int) -> None:
        run = runs[number]
        if status != 0:
            failed.append(run.output)
            return
        row = score(run, commit)
        rows[:] = [other for other in rows if not _is_same_run(other, row)]
        rows.append(row)
        write_rows(rows)
        name = f"{row['agent']} on {row['environment']}, seed {row['seed']}"
        print(f"{name}: {row['return']} in {row['seconds']} s", flush=True)

    made = [
        jobs.Job(f"examples.{run.entry.example}", run.flags(), run.output)
        for run in runs
    ]
    signals = interrupts.requested((signal.SIGINT, signal.SIGTERM), lambda: "the runs")
    with signals as is_requested:
        if any(_DATA in run.entry.flags for run in runs) and not RECORDING.exists():
            make_recording(is_requested)
        jobs.run_all(made, processes, is_requested, ended)
    if is_requested():
        raise KeyboardInterrupt
    if failed:
        raise RuntimeError(
            f"{len(failed)} runs failed; the end of these files says why: "
            f"{', '.join(map(str, failed))}. The same command tries them again."
        )


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs what is missing and makes the table; returns the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.scores", description=__doc__.partition("\n")[0]
    )
    parser.add_argument("--only", help="the agent, or the configuration's file name")
    parser.add_argument(
        "--processes", type=int, default=os.cpu_count(), help="runs at a time"
    )
    parser.add_argument(
        "--table", action="store_true", help="train nothing, only make the page"
    )
    options = parser.parse_args(arguments)
    rows = read_rows()
    if not options.table:
        chosen = [
            entry
            for entry in ENTRIES
            if options.only in (None, entry.agent, pathlib.Path(entry.config).stem)
        ]
        if not chosen:
            names = ", ".join(sorted({entry.agent for entry in ENTRIES}))
            parser.error(f"--only: got {options.only!r}, expected one of {names}")
        runs = list(missing(chosen, rows))
        print(f"{len(runs)} runs are missing.", flush=True)
        quiet.quieten_tensorflow()
        try:
            train(runs, options.processes, rows)
        except KeyboardInterrupt:
            print("Interrupted; the same command goes on.")
            return 130
    score_table.write(ENTRIES, rows, LOGS)
    return 0


if __name__ == "__main__":
    sys.exit(main())
