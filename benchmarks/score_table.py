"""Makes docs/scores.md and its pictures from the rows of the score table."""

from __future__ import annotations

import csv
import pathlib
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from benchmarks import score_pairs
from benchmarks.score_entries import FAMILIES, ROOT, Entry
from tfrl.eval import statistics

DOCS = ROOT / "docs"
_HEAD = """# Scores

Mean returns of greedy episodes with the final weights: 1,000 episodes on environments
that are written in TensorFlow, 20 on dm_control's, whose episodes have 1,000 steps, and
50 on all others. IQM is the interquartile mean over the seeds, with its 95 % bootstrap
interval (Agarwal et al., "Deep reinforcement learning at the edge of the statistical
precipice", 2021); `worst` shows the seeds that it hides. A reference is a published
return, most often the return of a single run. Seconds are the processor time of one run
with one thread, with its start and evaluations; in older rows the time of its
iterations, beside whatever else the processor did. The same seed gives the same run on
the same code, versions and processor; on another processor sums are rounded otherwise,
and the run is another one. So a row names the commit and the processor, which older
rows did not record, and `benchmarks/scores.csv` the versions and a checksum of the
final weights, too.
"""
_COLUMNS = (
    "agent",
    "environment",
    "steps",
    "seeds",
    "IQM (95 % interval)",
    "worst",
    "reference",
    "seconds",
    "commit",
    "processor",
)
_TAIL = """
The runs, one row each, are in `benchmarks/scores.csv`. This command trains what is
missing there and makes this page:

```
python -m benchmarks.scores
```

This one trains runs of the table once more, here a single seed, and compares: on the
same kind of processor with the same versions, the return and the final weights must be
equal, and elsewhere the return must be near the row's.

```
python -m benchmarks.scores --verify=ppo_ppo_acrobot/0
```

The same statistics of runs of your own:

```python
from tfrl.eval import statistics

summary = statistics.summarize([-150.3, -148.2, -152.9, -147.7, -149.1])
summary.interquartile_mean, summary.interquartile_mean_interval
```

C51 on MountainCar-v0 falls short of its reference: in the middle of a run some
evaluations reach -138 to -193, and the policy is lost again. Neither other initial
weights of the last layer nor a time limit that counts as a termination changed that.
DQN learns there with the same settings.

Recurrent PPO on PendulumNoVel-v1 falls short of its reference, which explores by
state-dependent noise.

QR-DQN on LunarLander-v3 has one run of three that does not learn in 100,000 steps;
sb3-contrib reports 168, give or take 39, over 5 runs, and rl-zoo3's own run has 70.2,
give or take 225 over its episodes.

R2D2 also learns bsuite's memory_len/15, where a bit has to be kept for 15 steps. Three
seeds make 0.052, 0.046 and 0.044 times the errors of random answers over all 10,000
episodes (commit 8c4e408, AMD EPYC avx512f); bsuite's analysis asks for less than 0.75:

```
python -m benchmarks.bsuite_memory --seed=0
```

An episode of bit flipping that fails has minus the number of bits as its return. The
shortest episodes have -4.0 on average on BitFlippingToOnes10-v0 and -6.5 on
BitFlipping15-v0. On the first, Stable-Baselines3's test of hindsight asks for 90 % of
episodes without a failure, after as many steps and updates.

Hopper-v5 is one run, and its evaluations of 10 episodes went up and down: 943.3 after
19,432 steps, 296.3 after 24,399. Stable-Baselines3's SAC (2.9.2, its defaults, as many
random steps first, one run) had 210.8 after 20,000 steps, over 50 greedy episodes:

```
PYTHON benchmarks/workers/score_with_torch.py --env=Hopper-v5 --steps=20000
```

PYTHON is a Python with `stable-baselines3` and `gymnasium[mujoco]`.

IQL, CQL and behavioural cloning (BC) learn offline, from 50,000 frames that SAC
collected while it learned. It made one update in 16 steps and was stopped half-trained,
so many of the episodes are poor. The steps of the offline agents are updates, and their
reference is the mean return of the recorded episodes. These commands record them:

```
python -m examples.train_sac --config=configs/sac.py \\
  --config.initial_collect_steps=2000 --config.collect_steps_per_iteration=16 \\
  --config.replay_capacity=50000 --num_iterations=3000 \\
  --logdir=logs/scores/half_trained_sac
python -m examples.record --replay --logdir=logs/scores/half_trained_sac \\
  --output=logs/scores/half_trained_sac/replay.tfrecord
```

One run of the table is its example with the same configuration:
"""
_CURVES = """## Learning curves

Evaluations of 10 greedy episodes during training: each run in grey, and the
interquartile mean of the runs in blue.
"""


def write(
    entries: Sequence[Entry],
    rows: Sequence[Mapping[str, str]],
    logs: pathlib.Path,
    docs: pathlib.Path = DOCS,
) -> None:
    """Writes the page, and pictures of the entries whose runs' folders are in `logs`.

    The folders are not in the repository, but the pictures are.
    """
    lines: dict[str, list[str]] = {}
    commands, pictures, shown, absent = [], [], [], []
    for entry in entries:
        own = [row for row in rows if entry.has(row)]
        if len(own) < entry.num_seeds:
            name = f"{entry.agent} on {entry.environment}"
            absent.append(f"- {name}: {len(own)} of {entry.num_seeds} seeds")
        if not own:
            continue
        shown += own
        lines.setdefault(family_of(entry), []).append(line(entry, own))
        words = (
            f"python -m examples.{entry.example}",
            f"--config={entry.config}",
            *entry.flags,
        )
        title = f"{entry.agent} on {own[0]['environment']}"
        commands.append(f"- {title}: `{' '.join(words)}`")
        picture = docs / "scores" / f"{entry.name}.png"
        folders = [entry.folder(int(row["seed"]), logs) for row in own]
        if all((folder / "metrics.csv").exists() for folder in folders):
            plot(title, folders, picture)
        if picture.exists():
            pictures.append(f"![{title}](scores/{picture.name})")
    head = [f"| {' | '.join(_COLUMNS)} |", "|---" * len(_COLUMNS) + "|"]
    text = [_HEAD, *notes(entries), ""]
    for family, its in lines.items():
        text += [f"## {family}", "", *head, *its, ""]
    text += ["## How the table is made", _TAIL, *commands, ""]
    if absent:
        text += ["These entries do not have all their runs yet:", "", *absent, ""]
    text += score_pairs.section(shown, docs)
    if pictures:
        text += [_CURVES, *pictures, ""]
    (docs / "scores.md").write_text("\n".join(text), encoding="utf-8")


def notes(entries: Iterable[Entry]) -> list[str]:
    """Returns the lines that say how the settings of all entries were chosen."""
    found = [entry for entry in entries if entry.note]
    if not found:
        return ["The settings are published ones, or were chosen on other seeds."]
    return [
        "The settings are published ones, or were chosen on other seeds. Exceptions:",
        "",
        *(f"- {entry.agent} on {entry.environment}: {entry.note}." for entry in found),
    ]


def family_of(entry: Entry) -> str:
    """Returns the kind of an entry's environment."""
    return next(name for name, entries in FAMILIES.items() if entry in entries)


def line(entry: Entry, rows: Sequence[Mapping[str, str]]) -> str:
    """Returns the line of an entry's runs in the table."""
    returns = [float(row["return"]) for row in rows]
    summary = statistics.summarize(returns)
    middle = f"{summary.interquartile_mean:.1f}"
    if len(returns) > 1:
        low, high = summary.interquartile_mean_interval
        middle += f" ({low:.1f}, {high:.1f})"
    reference = (
        "" if entry.reference is None else f"{entry.reference:g} ({entry.source})"
    )
    seconds = np.median(
        [float(row.get("processor_seconds") or row["seconds"]) for row in rows]
    )
    return (
        f"| {entry.agent} | {rows[0]['environment']} | {int(rows[0]['steps']):,} "
        f"| {len(rows)} | {middle} | {min(returns):.1f} | {reference} | {seconds:.0f} "
        f"| {_all_of(rows, 'commit')} | {_all_of(rows, 'processor')} |"
    )


def _all_of(rows: Sequence[Mapping[str, str]], field: str) -> str:
    """Returns the different texts of a field, in the order of the rows."""
    return ", ".join(dict.fromkeys(row[field] for row in rows if row[field]))


def plot(title: str, folders: Sequence[pathlib.Path], path: pathlib.Path) -> None:
    """Plots the evaluations during training: each run's, and their interquartile mean.

    Args:
      title: The title.
      folders: The folders of the runs.
      path: Where to save the picture.
    """
    from matplotlib import figure

    picture = figure.Figure(figsize=(4.5, 3.2), layout="constrained")
    axes = picture.subplots()
    steps, returns = evaluations(folders)
    axes.plot(steps, returns.T, color="0.75", linewidth=0.8)
    axes.plot(steps, statistics.interquartile_mean(returns, axis=0), color="C0")
    axes.set(title=title, xlabel="steps", ylabel="return")
    path.parent.mkdir(exist_ok=True)
    picture.savefig(path, dpi=100)


def evaluations(folders: Sequence[pathlib.Path]) -> tuple[np.ndarray, np.ndarray]:
    """Returns the steps `[N]` and returns `[seeds, N]` of evaluations.

    Raises:
      ValueError: A run has fewer evaluations than the first one.
    """
    steps, returns = [], []
    for folder in folders:
        with open(folder / "metrics.csv", newline="", encoding="utf-8") as file:
            rows = [row for row in csv.DictReader(file) if row["evaluation_return"]]
        steps = [steps_of(row) for row in rows]
        returns.append([float(row["evaluation_return"]) for row in rows])
        if len(returns[-1]) != len(returns[0]):
            raise ValueError(
                f"{folder / 'metrics.csv'}: got {len(returns[-1])} evaluations, "
                f"expected {len(returns[0])}, as in {folders[0]}; the file is cut "
                "short, or of another run: remove its folder and train it again."
            )
    return np.array(steps), np.array(returns)


def steps_of(row: Mapping[str, str]) -> int:
    """Returns a run's environment steps; its updates if it learns from recordings."""
    return int(row["environment_steps"]) or int(row.get("train_steps", 0))
