"""Runs the tutorial's loop in Python, by the same lines on tfrl and on TF-Agents.

    python -m benchmarks tutorial

"as written" calls `driver.run()`, `next(iterator)`, and `agent.train` under
`common.function`; "two calls" also has the driver under `common.function`, and calls
`next` inside the call that trains, as TF-Agents' examples do; "one call" does
everything in one call.
"""

from __future__ import annotations

import sys

from benchmarks import command_line
from benchmarks.measurement import Contender, Group, Session

_FORMS = {"as written": "as written", "two": "two calls", "one": "one call"}


def _pair(calls: str) -> tuple[Contender, Contender]:
    ours = Contender(f"tfrl, {_FORMS[calls]}", "tfrl", "tutorial", {"calls": calls})
    label = f"TF-Agents, {_FORMS[calls]}"
    if calls == "two":  # The loop of the DQN example.
        return ours, Contender(label, "tf_agents", "dqn", {"envs": 1})
    return ours, Contender(label, "tf_agents", "tutorial", {"calls": calls})


GROUP = Group(
    "the tutorial's loop in Python",
    tuple(contender for calls in _FORMS for contender in _pair(calls)),
    references=tuple(f"TF-Agents, {form}" for form in _FORMS.values()),
)


def run(session: Session) -> None:
    """Runs the benchmark."""
    session.measure("tutorial", [GROUP])


if __name__ == "__main__":
    sys.exit(command_line.main(["tutorial", *sys.argv[1:]]))
