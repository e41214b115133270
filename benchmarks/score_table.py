"""Makes docs/scores.md and its pictures from the rows of the score table."""

from __future__ import annotations

import pathlib
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np

from benchmarks import (
    pong,
    published,
    score_curves,
    score_pairs,
    score_peers,
    score_pictures,
    score_verdicts,
)
from benchmarks.score_entries import FAMILIES, RECORDINGS, ROOT, Entry
from tfrl.eval import statistics

DOCS = ROOT / "docs"
_HEAD = """# Scores

Scores are mean returns of greedy episodes with the final weights: 1,000 episodes on
environments that are written in TensorFlow or JAX, 20 on dm_control's, whose episodes
have 1,000 steps, and 50 on all others. An episode of a bandit is a round; regrets
beside TF-Agents' are on [the page of bandits](bandits.md#regret). `mean` is the mean
over the seeds, with its 95 % interval (Student's t). In rows whose interval says "seeds
only", all seeds were evaluated in episodes with the same starts and to one or three
digits. Their intervals hold the chance of the seeds and the rounding, and leave out the
chance of the starts. In newer rows the starts differ from seed to seed, so the interval
holds both, and `benchmarks/score_curves.csv` has the return of each episode. `steps` is
the mean over the seeds, too. IQM is the interquartile mean over the seeds (Agarwal et
al., "Deep reinforcement learning at the edge of the statistical precipice", 2021);
`worst` and the dots of the pictures show the seeds that it hides.

A rule chooses the references from [the published figures](#published-figures).
`reference` is the best figure of the same algorithm, on any version of the environment,
with at most as many steps as the row, give or take a tenth. It names a version other
than the row's. `settings' source` is what the source of the row's settings publishes
for its own, with the number of steps where that is larger.

`comparison` says whether the row is ahead of the reference or behind it: whether the
whole interval of the difference, row minus reference, lies on that side by more than
1 % of the reference. Otherwise it is level, which often means that the runs are too few
to tell. After the verdict come the ends of the interval and the numbers of runs, the
row's and the reference's:

- If the reference has several runs and their deviation, the interval has 95 % and the
  larger of the errors of Welch's and of the pooled t-test.
- Most references are a single run, and nobody knows how far such runs deviate. They are
  taken to deviate as the row's do. The interval has 99 %, because few runs often
  deviate less than they should, and a reference among the row's runs counts as level.
  The chance of the starts in its episodes is added, and that of the row's where it says
  "seeds only".
- The mean of recorded episodes has no error; the interval has 99 %, too.

In simulations of two equal agents, with 3 to 32 runs beside 1 to 10, this rule says
ahead or behind in at most 5 % of cases, where returns are normal, exponential, or cut
off at a limit. With 10 runs each it finds a difference of two deviations in 96 %. It
cannot know that a single run was an accident: if one run in ten fails, and the others
nearly agree, three seeds are called ahead in 8 %.

There is no verdict below three seeds, none where the row's settings come from another
source than the reference's, none where no run deviates, and none where the reference is
not a mean of final greedy returns: Tianshou publishes means of each run's best
evaluation, which are higher, and CleanRL and OpenAI's baselines the returns of
exploring actions at the end of training, which are lower than greedy ones.

Seconds are the processor time of one run with one thread, including its start and
evaluations; in older rows they are the time of its iterations, while the processor also
did other work. The same seed gives the same run on the same code, versions and
processor; on another processor sums are rounded differently, and the run differs. So
each row names the commit and the processor, and `benchmarks/scores.csv` also has the
versions and a checksum of the final weights, which older rows lack.
"""
_NAMES = ("agent", "environment")
_RESULTS = ("steps", "seeds", "mean (95 % interval)", "IQM", "worst")
_BESIDE = ("reference", "comparison", "settings' source")
_ORIGIN = ("seconds", "commit", "processor")
_TAIL = """
The runs, one row each, are in `benchmarks/scores.csv`. This command trains the
missing runs and makes this page:

```
python -m benchmarks.scores
```

The next command trains runs of the table once more, here a single seed, and compares
them with the table. On the same kind of processor with the same versions, the return
and the final weights must be equal; otherwise the return must be close to the row's.
A run that was interrupted, and resumed without the state of its environment, cannot be
verified; the column `resumed` of its row says so, and is empty in older rows.

```
python -m benchmarks.scores --verify=ppo_ppo_acrobot/0
```

A return also depends on the rounding of TensorFlow's kernels. On HalfCheetah-v5, PPO's
weights of seed 0 return 5,549 with oneDNN's kernels, as in the table, and 5,354 without
them, because a few of the 50 episodes take another course.

To compute the same statistics for your own runs:

```python
from tfrl.eval import statistics

summary = statistics.summarize([-150.3, -148.2, -152.9, -147.7, -149.1])
summary.interquartile_mean, summary.interquartile_mean_interval
```

PPO on HalfCheetah-v5 returns less than a single published run of other settings, with
layers of 256 units and 20 epochs. The row has Tianshou's settings, which did better on
other seeds: 5,687 and 6,689 on seeds 100 and 101, where those settings return 5,303 and
5,462. Runs differ more than the settings do: seeds 2 and 5 of the row end at 3,804 and
3,573, the others at 4,723 to 5,549. Tianshou's published figure, 5,784, is a mean over
the best evaluations of ten runs; here it is 4,977. Stable-Baselines3 with the row's
settings reaches 5,890 and 5,296 on seeds 0 and 1.

On seed 100, rl-zoo3's settings for Reacher-v5 and InvertedDoublePendulum-v5 return -4.2
and 5,138, which is no better than these rows with Tianshou's.

PPO on InvertedDoublePendulum-v5 balances the pendulum for 1,000 steps on all seeds, and
seed 1 loses this policy after 400,000 of the 1,000,000 steps: the deviation of its
actions has become small, and single updates change the policy much (its entropy goes
from 0.6 to -2.9, and the divergence of an update from 0.003 to 0.3).

PPO on Swimmer-v5 needs advantages over many steps, since a single stroke earns little.
On seed 100, rl-zoo3's settings reached 159 with their lambda of 0.95 and 363 with 0.99.

SAC on HalfCheetah-v5 is one run, with all learning rates at 3e-4, and is below
Tianshou's figure. Tianshou's program has 1e-3 for the actor and the critics. A run of
200,000 steps with these rates, on seed 100, is ahead of the row at first and then
level: its evaluations return 5,601 after 100,000 steps, where the row has 4,298, and
6,058 after 200,000, where the row has 6,012. rl-zoo3's run at 3e-4, on the
environment's v3, returns 9,535; CleanRL's three runs on v4, at 1e-3 for the critics and
the temperature, return 9,635.

SAC and TD3 on Hopper-v5 are stopped after 300,000 of the 1,000,000 steps that their
settings are for. SAC's seed 2 has not learned to hop without falling by then. After
1,000,000 steps of the environment's v3, rl-zoo3 publishes 2,326 for SAC and 3,606 for
TD3, one run each.

PPO on MiniGrid-DoorKey-5x5-v0 and MiniGrid-Unlock-v0 returns 0.94 to 0.97 in the last
rollouts of each seed, where actions are drawn. The greedy actions of some seeds repeat
themselves in a few of the 50 episodes until the limit of steps, which return 0. This is
why PPO returns less than rl-zoo3's run on MiniGrid-Unlock-v0: the table plays greedy
actions. On MiniGrid-Empty-Random-5x5-v0 rl-zoo3's run has more steps than the rows,
whose 100,000 frames include those of the resets.

DQN on MountainCar-v0 returns 11 less than a single run of rl-zoo3, with its settings;
sb3-contrib reports -107 with a standard error of 4, over five runs. "DQN as C51" has
the settings and the budget of C51, and returns less than DQN with settings of its own
on Acrobot-v1 and MountainCar-v0; figures of other settings give it no verdict.

IQN, Rainbow and R2D2 have double Q-learning, too; the rows of C51 and QR-DQN do not.

Prioritized double DQN on CartPole-v1 has twice the learning rate of double DQN. With
uniform replay at this rate ("Double DQN at the rate of prioritized double DQN") the
final returns are the same, and the first evaluation of 475 comes after 6,900 steps
(median), with double DQN's rate after 9,800. On seeds from 100 up it came after 6,000
steps with priorities, so most of the difference is the rate's.

C51 on MountainCar-v0 needs two details of CleanRL's program that its settings do not
name: PyTorch's initial weights (`initial_weights`), and a bound of 1e-5 for the
probabilities in the loss (`min_probability`). With one of them or none, nine of ten
runs on seeds 100 and 101 ended at -193 to -200.

Recurrent PPO on PendulumNoVel-v1 returns 13 less than its reference, a single run with
rollouts of 1,024 steps of 4 environments. With independent noise, which the row had
before, it reached -255; state-dependent noise as in that run brings -231. That run
trains on shorter sequences than its rollouts, which `lstm_sequence_length` makes, too:
rollouts of 1,024 steps of 4 environments in sequences of 32 steps reach -192 and -198
on seeds 100 and 101, and the row's settings -189 and -181, so the row keeps them.

BC on Pendulum-v1 imitates all recorded actions, good and bad, so it can be expected to
reach about its reference, the mean return of the data. CQL, TD3+BC, ReBRAC, EDAC and
IQL learn from the rewards of the same data, and are far ahead of it.

On HalfCheetah-v5 BC imitates the mean of what SAC did in 100,000 steps of learning,
which moves nowhere: d3rlpy's BC returned -0.03 after 8,000 updates on the same frames.
On 20 episodes of the final policy, whose mean is 4,266, BC returned 4,294. On the
replay, TD3+BC's seed 0 returns less than 150 in 14 of its 50 episodes, and 4,187 in the
median one.

TD3+BC on Hopper-v5's episodes returns far less than the policy that it learns from. So
does d3rlpy's, which returns 460 with the same settings on the same frames. BC, which
has no values, and IQL, whose values are of recorded actions alone, return about what
the policy does. So the values of actions that are not in the data seem to mislead
TD3+BC here; on HalfCheetah-v5's episodes they do not.

On CartPole-v1 and LunarLander-v3 agents of one choice learn from the frames of a DQN
that explored and was stopped half-trained: 10,842 and 49,872 frames, whose episodes
return 68 and -51 on average. BC on LunarLander-v3 imitates the exploring, and so does
d3rlpy's; CQL learns from the rewards there, and IQL's seeds differ much. The weight of
CQL's penalty was chosen on seed 100 of each task.

QR-DQN on CartPole-v1 has four runs of 32 that end at 186, 227, 277 and 377, and the
mean of all is 469; rl-zoo3's single run returns 500, and sb3-contrib's five 386, with a
standard error of 64. On LunarLander-v3, sb3-contrib reports 168 with a standard error
of 39, over five runs, and rl-zoo3 70.2 of one.

Some rows on CartPole-v1 have a single seed far below the others; three of these runs
were trained again, with the same returns. A2C's seed 9 has learned to keep the pole up
and not to stay on the track: its cart leaves the track on the right in each of 20
episodes. Discrete SAC's seed 30 and C51's seed 4 lost a policy that had been good:
most evaluations in the second half of these runs return 500, but the last one does not.

R2D2 also learns bsuite's memory_len/15, where the agent must remember a bit for 15
steps. Over all 10,000 episodes, three seeds make 0.052, 0.046 and 0.044 times the
errors of random answers (commit 8c4e408, AMD EPYC avx512f); bsuite's analysis
requires less than 0.75:

```
python -m benchmarks.bsuite_memory --seed=0
```

The return of a failed episode of bit flipping is minus the number of bits. The
shortest possible episodes have -4.0 on average on BitFlippingToOnes10-v0 and -6.5 on
BitFlipping15-v0. On the first, Stable-Baselines3's test of hindsight requires success
in 90 % of episodes, after the same number of steps and updates.

All agents of bandits are scored in the same rounds, 1,000 for each seed. Whoever takes
the best arm in each of them earns -27.9 on LinearBandit-v0, 1.162 on PerArmBandit-v0
and 18.44 on WheelBandit-v0; in all rounds -29.8, 1.166 and 18.77, and random arms earn
-67.5, 0 and 4.57. A reward of LinearBandit-v0 deviates by 215, so that intervals are
wide, but differences between agents are not due to the rounds: LinUCB and LinTS take
the best arm in all 5,000 rounds, and the networks lose 1.4 (neural epsilon-greedy) and
2.8 a round (NeuralLinUCB). On the wheel LinUCB loses 0.13 a round, neural
epsilon-greedy 0.08 and NeuralLinUCB 0.05.

On Pendulum-v1 offline agents learn from 50,000 frames that SAC collected while it
learned. That SAC did one update every 16 steps and was stopped half-trained, so many of
the episodes are poor. On MuJoCo they learn from seed 0 of SAC for 100,000 steps: from
all frames of its training ("on replay"), or from 100 episodes of its best policy, which
acts greedily ("on episodes"). The steps of offline agents are updates, and their
reference is the mean return of the recorded episodes. On Hopper IQL's rewards are
multiplied by 1,000 / (largest - smallest return of the recording). ReBRAC has CORL's
penalties for the data of D4RL that are most alike: medium-replay for the replay, and
medium for the episodes. These commands record them:

```"""
_HEAD_OF_COMMANDS = """```

These commands train a single run of each agent, with seed 0 or that of `--seed`, and
need no clone:
"""
_BEST = """## Best evaluations

Tianshou publishes the mean over runs of each run's best evaluation during training,
which is higher than the return of final weights. The same mean of the runs above, from
evaluations of 10 episodes, stands beside it. The largest of more evaluations is higher,
so their numbers count, and there is no verdict:

| agent | environment | seeds | evaluations | mean of best (95 % interval) | published |
|---|---|---|---|---|---|"""
_PUBLISHED = """## Published figures

`benchmarks/published.csv` has each figure with its algorithm, environment, steps,
deviation, number of runs, kind and page. They are of these sources:

- rl-zoo3's `benchmark.md`: one run each, greedy but on Atari games, after training.
- sb3-contrib's page of QR-DQN: five runs of QR-DQN and of DQN with rl-zoo3's settings,
  after training. It prints standard errors.
- Tianshou's benchmark of MuJoCo: ten runs, the best evaluation of each.
- CleanRL's pages: three runs, returns of the exploring actions at the end of training;
  two rows there are OpenAI's baselines.
- The results of SAC, CrossQ, DroQ, REDQ and MR.Q in SimbaV2's repository: ten runs
  each. The figures are computed from its files, which do not say how actions were
  chosen, so they give no verdict.
- The curves in gymnax-blines' files of its runs on MinAtar's games: one run each. A
  figure is the mean of 164 episodes, whose actions are sampled, at that number of
  steps. The learning rate stays, so a shorter run would have ended there.
- The mean return of the recorded episodes, for agents that learn from recordings.

Figures that are only drawn, in papers or on pages, are left out.
"""
_PICTURES = """## Pictures

For each environment, the pictures show the evaluations during training (10 greedy
episodes each), over steps and over seconds of one core, as interquartile means with
95 % bootstrap intervals. They also show the final returns: a dot for each run, and a
black line for the reference. A run's seconds are spread evenly over its steps;
they can be compared only where the tables name the same processor. The strips show
one episode of a final policy. Runs that are older than the file of curves have separate
pictures below, with each run in grey.
"""


def command(entry: Entry) -> str:
    """Returns the command that trains a run of an entry, without a clone."""
    return shlex.join(["tfrl", "train", entry.algorithm, *entry.flags()])


def write(
    entries: Sequence[Entry],
    rows: Sequence[Mapping[str, str]],
    curves: Mapping[score_curves.Key, score_curves.Curve],
    logs: pathlib.Path,
    docs: pathlib.Path = DOCS,
) -> None:
    """Writes the page and its pictures.

    Args:
      entries: The entries of the table.
      rows: The rows of their runs.
      curves: The evaluations of runs.
      logs: Where the runs' folders are. They are not in the repository, but the strips
        are that were made of their films.
      docs: Where the page is.
    """
    lines: dict[str, list[dict[str, str]]] = {}
    commands, shown, old, verdicts = [], [], [], []
    runs_of: dict[str, list[score_pictures.Runs]] = {}
    rows_of = {entry: [row for row in rows if entry.has(row)] for entry in entries}
    for entry, own in rows_of.items():
        if not own:
            continue
        shown += own
        found = score_verdicts.outcome(own, curves)
        reference, source = _figures(entry, own)
        verdicts.append(score_verdicts.verdict(found, reference, source))
        lines.setdefault(family_of(entry), []).append(cells(entry, own, curves))
        environment = own[0]["environment"]
        commands.append(f"- {entry.agent} on {environment}: `{command(entry)}`")
        known = [curves[k] for k in map(score_curves.key_of, own) if k in curves]
        runs_of.setdefault(environment, []).append(
            score_pictures.Runs(
                entry.agent,
                own,
                known if len(known) == len(own) else (),
                None if reference is None else reference.value,
            )
        )
        picture = docs / "scores" / f"{entry.name}.png"
        if len(known) == len(own):
            picture.unlink(missing_ok=True)
        elif picture.exists():
            title = f"{entry.agent} on {environment}"
            old.append(f"![{title}](scores/{picture.name})")
        film = entry.folder(int(own[0]["seed"]), logs) / "agent.mp4"
        if film.exists():
            score_pictures.save_strip(film, _strip_of(environment, docs))
    text = [_HEAD, score_verdicts.count(verdicts), "", *notes(entries), ""]
    for family, its in lines.items():
        text += [f"## {family}", "", *tables(its), ""]
    text += best_evaluations(rows_of, curves)
    text += [
        _PUBLISHED,
        "## How the table is made",
        _TAIL,
        *recorded(k for k, own in rows_of.items() if own),
    ]
    text += [_HEAD_OF_COMMANDS, *commands, ""]
    text += _unfinished(rows_of)
    text += [score_peers.section(shown, score_peers.read_rows()), ""]
    text += pong.section(pong.read(), docs / "scores" / "pong.png")
    text += score_pairs.section(shown, docs)
    if runs_of:
        text += [_PICTURES, *_pictures(runs_of, docs), *old, ""]
    (docs / "scores.md").write_text("\n".join(text), encoding="utf-8")


def recorded(shown: Iterable[Entry]) -> list[str]:
    """Returns the lines of the commands that record what entries learn from."""
    used = {entry.changes.get("data") for entry in shown}
    recordings = [each for each in RECORDINGS if each.source in used]
    lines = []
    for each in recordings:
        folder = each.folder.relative_to(ROOT)
        flags = " ".join([*each.entry.flags(), f"--logdir={folder}"])
        what, *words = each.words(each.path)
        short = " ".join(word.replace(f"{ROOT}/", "") for word in words)
        lines += [f"tfrl train {each.entry.algorithm} {flags}", f"tfrl {what} {short}"]
    return list(dict.fromkeys(lines))


def best_evaluations(
    rows_of: Mapping[Entry, Sequence[Mapping[str, str]]],
    curves: Mapping[score_curves.Key, score_curves.Curve],
) -> list[str]:
    """Returns the lines that show best evaluations of runs beside published ones.

    Args:
      rows_of: The rows of each entry's runs.
      curves: The evaluations of runs.
    """
    lines = []
    for entry, own in rows_of.items():
        keys = [score_curves.key_of(row) for row in own]
        if not (own and all(key in curves for key in keys)):
            continue
        steps = mean_steps(own)
        best = [figure for figure in entry.figures if figure.kind == "best"]
        figure = published.reference(best, steps)
        if figure is None:
            continue
        largest = [float(curves[key].returns.max()) for key in keys]
        evaluations = len(curves[keys[0]].returns)
        lines.append(
            f"| {entry.agent} | {entry.environment} | {len(own)} | {evaluations} "
            f"| {_mean_text(score_verdicts.Outcome(tuple(largest)))} "
            f"| {figure.text(entry.environment, steps)} |"
        )
    return [_BEST, *lines, ""] if lines else []


def _unfinished(rows_of: Mapping[Entry, Sequence[Mapping[str, str]]]) -> list[str]:
    """Returns the lines on the runs that are missing, or will be trained again."""
    absent, again = [], []
    for entry, own in rows_of.items():
        name = f"{entry.agent} on {entry.environment}"
        if len(own) < entry.num_seeds:
            absent.append(f"- {name}: {len(own)} of {entry.num_seeds} seeds")
        if reasons := _all_of(own, "again"):
            again.append(f"- {name}: {reasons}")
    lines = []
    if absent:
        lines += ["These entries do not have all their runs yet:", "", *absent, ""]
    if again:
        lines += ["Runs of these entries will be trained again:", "", *again, ""]
    return lines


def _pictures(
    runs_of: Mapping[str, Sequence[score_pictures.Runs]], docs: pathlib.Path
) -> list[str]:
    """Makes the pictures of the environments; returns the lines that show them."""
    lines = []
    for environment, runs in runs_of.items():
        path = docs / "scores" / f"{_file_name(environment)}.png"
        path.parent.mkdir(exist_ok=True)
        score_pictures.draw_environment(environment, runs).savefig(path, dpi=100)
        strip = _strip_of(environment, docs)
        lines += [
            f"![Returns on {environment}](scores/{path.name})",
            *(
                [f"![An episode of {environment}](scores/{strip.name})"]
                if strip.exists()
                else []
            ),
            "",
        ]
    return lines


def _strip_of(environment: str, docs: pathlib.Path) -> pathlib.Path:
    return docs / "scores" / f"strip_{_file_name(environment)}.png"


def _file_name(environment: str) -> str:
    return environment.replace("/", "_")


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


def tables(rows: Sequence[Mapping[str, str]]) -> Iterator[str]:
    """Yields the lines of three tables of rows, as one would be wider than a page.

    Args:
      rows: The results of `cells`. Those without a reference are not in the table of
        references.
    """
    referred = [row for row in rows if row["reference"] or row["settings' source"]]
    parts = (_RESULTS, rows), (_BESIDE, referred), (_ORIGIN, rows)
    for number, (columns, own) in enumerate((x, y) for x, y in parts if y):
        names = (*_NAMES, *columns)
        yield from [""] * (number > 0)
        yield f"| {' | '.join(names)} |"
        yield "|---" * len(names) + "|"
        for row in own:
            yield f"| {' | '.join(row[name] for name in names)} |"


def picture_of(entry: Entry, environment: str, docs: pathlib.Path = DOCS) -> str:
    """Returns the file of an entry's own picture, or of the environment's."""
    own = f"{entry.name}.png"
    exists = (docs / "scores" / own).exists()
    return own if exists else f"{_file_name(environment)}.png"


def cells(
    entry: Entry,
    rows: Sequence[Mapping[str, str]],
    curves: Mapping[score_curves.Key, score_curves.Curve],
) -> dict[str, str]:
    """Returns what the tables say of an entry's runs, by their columns.

    Args:
      entry: The entry.
      rows: The rows of its runs.
      curves: The evaluations of runs.
    """
    found = score_verdicts.outcome(rows, curves)
    steps, environment = mean_steps(rows), rows[0]["environment"]
    reference, own = _figures(entry, rows)
    shown = ("" if x is None else x.text(environment, steps) for x in (reference, own))
    seconds = np.median(
        [float(row.get("processor_seconds") or row["seconds"]) for row in rows]
    )
    reference_text, own_text = shown
    texts = (
        *(entry.agent, environment, f"{steps:,}", str(len(rows))),
        _mean_text(found),
        return_text(statistics.interquartile_mean(found.returns)),
        return_text(min(found.returns)),
        *(reference_text, score_verdicts.text(found, reference, own), own_text),
        *(f"{seconds:.0f}", _all_of(rows, "commit"), _all_of(rows, "processor")),
    )
    names = (*_NAMES, *_RESULTS, *_BESIDE, *_ORIGIN)
    return dict(zip(names, texts, strict=True))


def mean_steps(rows: Sequence[Mapping[str, str]]) -> int:
    """Returns the mean number of the runs' steps."""
    return round(np.mean([int(row["steps"]) for row in rows]))


def _figures(
    entry: Entry, rows: Sequence[Mapping[str, str]]
) -> tuple[published.Figure | None, published.Figure | None]:
    """Returns the reference, and what the source of the settings published."""
    steps = mean_steps(rows)
    source = entry.settings_source()
    return (
        published.reference(entry.figures, steps),
        published.of_settings(entry.figures, source, steps),
    )


def _mean_text(found: score_verdicts.Outcome) -> str:
    """Returns a mean and its interval, and whether that is of the seeds alone."""
    text = return_text(found.mean)
    if len(found.returns) == 1:
        return text
    ends = ", ".join(map(return_text, found.interval))
    return f"{text} ({ends}{'; seeds only' * bool(found.shared_starts)})"


def return_text(value: float) -> str:
    """Returns a return with one digit after the point, or three if it is below 1."""
    return f"{value:.1f}" if abs(value) >= 1 else f"{value:.3f}"


def _all_of(rows: Sequence[Mapping[str, str]], field: str) -> str:
    """Returns the different texts of a field, in the order of the rows."""
    return ", ".join(dict.fromkeys(row[field] for row in rows if row[field]))
