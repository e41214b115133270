"""Compares bandits' agents with TF-Agents': rounds a second, and regret.

    python -m benchmarks bandits --rounds=3

The problem and the settings are those of TF-Agents' example of a stationary linear
bandit: five arms, contexts of 15 numbers, batches of eight, and an update every two
steps, so that an iteration has 16 rounds. TF-Agents is measured with the loop of its
trainer, with its driver and its training as functions, and also with its environment in
TensorFlow. The regret is by how much the best arms would have paid more, expected, in
one member of the batch. It is compared on the wheel, too.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

from benchmarks import command_line, processes, report
from benchmarks.measurement import Contender, Group, Session

AGENTS = {
    "LinearUCB": "LinUCB",
    "LinearThompsonSampling": "linear Thompson sampling",
    "NeuralEpsilonGreedy": "neural epsilon-greedy",
}
# The problems of the regrets, and their agents.
_PROBLEMS = {
    "linear": ("a linear bandit", tuple(AGENTS)),
    "wheel": ("the wheel", ("LinearUCB", "NeuralEpsilonGreedy")),
}
_SYSTEMS = {"tfrl": "bandits", "TF-Agents": "tf_agents_bandits"}
_FORMS = {
    "trainer": "TF-Agents, its trainer's loop",
    "functions": "TF-Agents, functions",
    "graph": "TF-Agents, functions and environment",
}
# Half of those of the example.
_ROUNDS, _QUICK_ROUNDS = 16_000, 800
_SEEDS = 3


def groups() -> Iterator[Group]:
    """Yields a group for each agent."""
    for agent, title in AGENTS.items():
        ours = Contender(
            "tfrl, jit_compile", _SYSTEMS["tfrl"], "rounds", {"agent": agent}
        )
        peers = (
            Contender(
                label, _SYSTEMS["TF-Agents"], "rounds", {"agent": agent, "form": form}
            )
            for form, label in _FORMS.items()
        )
        yield Group(
            f"{title}, a linear bandit",
            (ours, *peers),
            references=tuple(_FORMS.values()),
            units=("rounds",),
        )


def run(session: Session) -> None:
    """Runs the benchmark."""
    session.measure("bandits", groups())
    if not session.against:
        for problem, (_, agents) in _PROBLEMS.items():
            for agent in agents:
                session.add(_regrets(session, agent, problem))


def _regrets(session: Session, agent: str, problem: str) -> report.Result:
    """Returns the regrets of both libraries after as many rounds, of some seeds."""
    rounds = _QUICK_ROUNDS if session.quick else _ROUNDS
    series, notes = [], []
    for label, system in _SYSTEMS.items():
        settings = {"agent": agent, "problem": problem, "rounds": rounds}
        try:
            worker = session.pool.get(system)
            regrets = [
                worker.make("regret", {**settings, "seed": seed})[1]["regret"]
                for seed in range(1 if session.quick else _SEEDS)
            ]
            series.append(report.Series(label, regrets))
        except processes.WorkerError as error:
            notes.append(f"{label}: not measured: {error}")
    return report.Result(
        "bandits",
        f"{AGENTS[agent]}, {_PROBLEMS[problem][0]}, regret of {rounds // 8:,} rounds",
        "regret",
        series,
        references=("TF-Agents",),
        notes=notes,
        less_is_better=True,
    )


if __name__ == "__main__":
    sys.exit(command_line.main(["bandits", *sys.argv[1:]]))
