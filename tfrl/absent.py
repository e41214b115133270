"""Explains failed imports of modules and classes that only TF-Agents has.

A finder at the end of `sys.meta_path` raises an ImportError with a sentence for them,
for `import tfrl.agents.categorical_dqn` and
`from tfrl.agents import CategoricalDqnAgent` alike.
"""

from __future__ import annotations

import importlib.abc
import sys
from collections.abc import Sequence
from typing import Any

_PAGE = "docs/from_tf_agents.md#what-is-not-here"

# By package: what tfrl does not have yet, modules and the classes in them.
_NOT_YET = {
    "tfrl.experimental": ("examples",),
    "tfrl.policies": ("qtopt_cem_policy", "CEMPolicy"),
    "tfrl.replay_buffers": ("rlds_to_reverb",),
}
# What stays out, and what to use instead.
_USE_INSTEAD = {
    "tfrl.bandits": "bandits are not part of tfrl",
    "tfrl.specs.bandit_spec_utils": "bandits are not part of tfrl",
    "tfrl.policies.py_tf_policy": "use tfrl.policies.py_tf_eager_policy",
    "tfrl.utils.session_utils": "TensorFlow 2 has no sessions",
    **dict.fromkeys(
        (
            "tfrl.agents.test_util",
            "tfrl.drivers.test_utils",
            "tfrl.train.ppo_learner_test_utils",
            "tfrl.train.utils.test_utils",
            "tfrl.trajectories.test_utils",
        ),
        "use the environments and suites of tfrl.testing",
    ),
}
# Maps full names to a reason.
NAMES = {
    **{
        f"{package}.{name}": "it is not here yet"
        for package, names in _NOT_YET.items()
        for name in names
    },
    **_USE_INSTEAD,
}


def install() -> None:
    """Makes imports of absent names say so; a second call does nothing."""
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.append(_Finder())


class _Finder(importlib.abc.MetaPathFinder):
    """Raises for names that no other finder knows.

    The import system also asks for the module `tfrl.agents.PPOAgent` if
    `from tfrl.agents import CategoricalDqnAgent` finds no such attribute.
    """

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: Any = None
    ) -> None:
        reason = NAMES.get(fullname)
        if reason is not None:
            raise ImportError(
                f"{fullname}: TF-Agents has it, tfrl does not: {reason}. See {_PAGE}.",
                name=fullname,
            )
