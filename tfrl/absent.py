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

_NO_BANDITS = "bandits are not part of tfrl; keep TF-Agents for them"
_NO_C51 = (
    "it is not here yet; use tfrl.agents.DqnAgent, or tfrl.agents.D4pgAgent for a "
    "distribution of values and continuous actions"
)
_NO_CEM = (
    "it is not here yet; train an actor for continuous actions, such as "
    "tfrl.agents.Td3Agent's"
)

# Maps full names to why they are not here, and what to use instead.
NAMES = {
    "tfrl.agents.categorical_dqn": _NO_C51,
    "tfrl.agents.CategoricalDqnAgent": _NO_C51,
    "tfrl.policies.qtopt_cem_policy": _NO_CEM,
    "tfrl.policies.CEMPolicy": _NO_CEM,
    "tfrl.replay_buffers.rlds_to_reverb": (
        "it is not here yet; write the steps by an adder of tfrl.adders"
    ),
    "tfrl.experimental.examples": (
        "it is not here yet; tfrl.experimental.distributed runs actors and a learner"
    ),
    "tfrl.bandits": _NO_BANDITS,
    "tfrl.specs.bandit_spec_utils": _NO_BANDITS,
    "tfrl.policies.py_tf_policy": "use tfrl.policies.py_tf_eager_policy",
    "tfrl.utils.session_utils": (
        "TensorFlow 2 has no sessions; call functions eagerly or as a tf.function"
    ),
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
                f"{fullname}: TF-Agents has it, tfrl does not: {reason}.",
                name=fullname,
            )
