"""Checks the rules of `tfrl.reports.health` on broken runs and on healthy ones.

    python -m benchmarks.health              # train what is missing, then the table
    python -m benchmarks.health --only=dqn   # the cases whose name has this text
    python -m benchmarks.health --table      # the table of the runs that are there

Two processes train the cases, and leave their rows in logs/health, so that a change of
a threshold needs no training.
"""

from __future__ import annotations

import argparse
import json
import pathlib
import subprocess
import sys
from collections.abc import Mapping

from benchmarks import health_cases, health_held_out, health_named
from tfrl.reports import evidence, health

FOLDER = pathlib.Path(__file__).parents[1] / "logs" / "health"
_SEEDS = (0, 1, 2)
_ONE_SEED = (
    health_named.HEALTHY | health_held_out.HEALTHY | health_held_out.SECOND_HEALTHY
)
BROKEN = (
    health_cases.BROKEN
    | health_named.BROKEN
    | health_held_out.BROKEN
    | health_held_out.SECOND_BROKEN
)
HEALTHY = health_cases.HEALTHY | _ONE_SEED


def train(name: str) -> None:
    """Trains a case, and writes its rows and settings to a file."""
    import tfrl
    from tfrl import train as train_lib
    from tfrl.algorithms import run_settings

    base, _, seed = name.partition("-")
    case = (HEALTHY | BROKEN)[base]
    settings = {"seed": int(seed or case.seed), **case.settings}
    made = getattr(tfrl, case.algorithm)(case.environment, **settings)
    if case.rows:
        iterations = made.num_iterations
        if case.steps:
            iterations = made.least_iterations(case.steps)
        settings |= {
            "log_interval": max(iterations // case.rows, 1),
            "eval_interval": max(iterations // case.evaluations, 1),
        }
        made = getattr(tfrl, case.algorithm)(case.environment, **settings)
    made.build(case.steps)
    untrained = run_settings.make(made, made.agent, films=False)["evaluate"](0)
    made.rows.append(
        {
            "iteration": 0,
            "environment_steps": 0,
            "train_steps": 0,
            "evaluation_return": untrained.mean,
            "evaluation_returns": untrained.returns.tolist(),
            "evaluation_lengths": untrained.lengths.tolist(),
            "evaluation_terminated": untrained.terminated.tolist(),
        }
    )
    try:
        made.learn(case.steps, callbacks=[train_lib.Callback()], progress=False)
    except Exception as error:  # A run that ends by NaN has rows until then.
        print(f"{name}: {type(error).__name__}: {error}", file=sys.stderr)
    found = made.evidence()
    path = FOLDER / f"{name}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"settings": found.settings, "rows": found.rows}))


def read(name: str) -> evidence.Evidence | None:
    """Returns what a case has measured, or None."""
    path = FOLDER / f"{name}.json"
    if not path.exists():
        return None
    saved = json.loads(path.read_text())
    return evidence.Evidence(saved["rows"], saved["settings"])


def names() -> list[str]:
    """Returns the names of all runs."""
    several = [f"{x}-{seed}" for seed in _SEEDS for x in health_cases.HEALTHY]
    return [*BROKEN, *several, *_ONE_SEED]


def table() -> str:
    """Returns the tables of hits and false alarms, in Markdown."""
    seen = health_cases.BROKEN | health_named.BROKEN
    seen_healthy = health_cases.HEALTHY | health_named.HEALTHY
    return "\n\n".join(
        [
            "Runs with which rules and bounds were chosen:",
            _table_of(seen, seen_healthy),
            "Runs that were held out at first:",
            _table_of(health_held_out.BROKEN, health_held_out.HEALTHY),
            "Runs that were held out when rules had been changed because of these:",
            _table_of(health_held_out.SECOND_BROKEN, health_held_out.SECOND_HEALTHY),
        ]
    )


def _table_of(
    broken: Mapping[str, health_cases.Case], healthy: Mapping[str, health_cases.Case]
) -> str:
    """Returns the table of some runs, and the sentence that sums it up."""
    lines = ["| Run | Rule | Found |", "| --- | --- | --- |"]
    hits, num_broken, alarms, num_healthy = 0, 0, 0, 0
    for name, case in broken.items():
        rules = _rules_of_broken(name, case)
        if rules is None:
            lines.append(f"| {case.text} | {case.rule} | not trained |")
            continue
        num_broken += 1
        is_hit = case.rule in rules
        hits += is_hit
        # That nothing was learned is a finding of nearly all of them.
        rest = ", ".join(x for x in rules if x not in (case.rule, "learning"))
        lines.append(
            f"| {case.text} | {case.rule} | {'yes' if is_hit else 'no'}"
            f"{f'; also {rest}' if rest else ''} |"
        )
    for name, case in healthy.items():
        found = _rules_of_healthy(name)
        num_healthy += len(found)
        alarms += sum(bool(rules) for rules in found.values())
        text = "; ".join(
            f"{run}: {', '.join(rules)}" for run, rules in found.items() if rules
        )
        lines.append(
            f"| {case.text}, runs: {sum(run != 'all' for run in found)} | none | "
            f"{text or 'nothing'} |"
        )
    return "\n".join(lines) + (
        f"\n\n{_number(hits, 'hit')} in {_number(num_broken, 'broken run')}, "
        f"{_number(alarms, 'false alarm')} in {_number(num_healthy, 'healthy one')}."
    )


def _number(number: int, word: str) -> str:
    return f"{number} {word}{'s' * (number != 1)}"


def _rules_of_broken(name: str, case: health_cases.Case) -> list[str] | None:
    """Returns the rules that find something in a broken run; None without the run."""
    run = read(name)
    if run is None:
        return None
    found = health.check(run)
    if case.rule == "seeds":
        others = [read(f"{name.partition('_')[2]}-{seed}") for seed in (0, 1)]
        found = health.check_seeds([run, *(x for x in others if x)])
    return [each.rule for each in found]


def _rules_of_healthy(name: str) -> dict[str, list[str]]:
    """Returns the rules that find something in healthy runs, by their seeds."""
    runs = {seed: read(f"{name}-{seed}") for seed in _SEEDS}
    if name in _ONE_SEED:
        runs = {_ONE_SEED[name].seed: read(name)}
    known = {f"seed {seed}": run for seed, run in runs.items() if run is not None}
    found = {seed: [x.rule for x in health.check(run)] for seed, run in known.items()}
    together = [x.rule for x in health.check_seeds(list(known.values()))]
    return found | ({"all": together} if together else {})


def main() -> None:
    """Runs the command."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.health")
    parser.add_argument("--only", default="", help="cases whose name has this text")
    parser.add_argument("--table", action="store_true", help="train nothing")
    parser.add_argument("--cases", default="", help=argparse.SUPPRESS)
    parser.add_argument("--verbose", action="store_true", help="print each finding")
    arguments = parser.parse_args()
    for name in filter(None, arguments.cases.split(",")):
        train(name)
        print(name, flush=True)
    if arguments.cases:
        return
    chosen = [name for name in names() if arguments.only in name]
    if not arguments.table:
        missing = [name for name in chosen if not (FOLDER / f"{name}.json").exists()]
        command = [sys.executable, "-m", "benchmarks.health"]
        # A process that trains several cases imports TensorFlow once.
        halves = [part for part in (missing[::2], missing[1::2]) if part]
        started = [
            subprocess.Popen([*command, f"--cases={','.join(part)}"]) for part in halves
        ]
        for process in started:
            process.wait()
    if arguments.verbose:
        for name in chosen:
            run = read(name)
            for each in [] if run is None else health.check(run):
                print(f"{name}: {each}")
    print(table())


if __name__ == "__main__":
    main()
