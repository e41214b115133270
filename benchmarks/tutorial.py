"""The tutorial's own loop in Python, beside TF-Agents' same lines.

    python -m benchmarks tutorial

"as written" is `driver.run()`, `next(iterator)` and `agent.train` under
`common.function`; "two calls" has the driver under `common.function`, too, and `next`
within the call that trains, as TF-Agents' examples; "one call" makes one of all.
"""

from __future__ import annotations

import sys

from benchmarks import command_line
from benchmarks.measurement import Contender, Group, Session

_FORMS = {"as written": "as written", "two": "two calls", "one": "one call"}
GROUP = Group(
    "the tutorial's loop in Python",
    tuple(
        Contender(f"{title}, {form}", system, "tutorial", {"calls": calls})
        for calls, form in _FORMS.items()
        for title, system in (("tfrl", "tfrl"), ("TF-Agents", "tf_agents"))
    ),
    references=tuple(f"TF-Agents, {form}" for form in _FORMS.values()),
)


def run(session: Session) -> None:
    """Measures it."""
    session.measure("tutorial", [GROUP])


if __name__ == "__main__":
    sys.exit(command_line.main(["tutorial", *sys.argv[1:]]))
