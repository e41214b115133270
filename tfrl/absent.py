"""Explains failed imports of what only TF-Agents or Acme has.

A finder at the end of `sys.meta_path` raises an ImportError with a sentence, for
`import tfrl.agents.categorical_dqn` and
`from tfrl.agents import CategoricalDqnAgent` alike. The packages in which names are
missing take their attributes by `attach_stub`, whose AttributeErrors say the same.
"""

from __future__ import annotations

import importlib.abc
import sys
from collections.abc import Callable, Sequence
from typing import Any

import lazy_loader

_TF_AGENTS = "TF-Agents has it, tfrl does not: {}. See {}."
_TF_AGENTS_PAGE = "docs/from_tf_agents.md#what-is-not-here"
_ACME = "Acme has it, tfrl does not: {}. See {}."
_ACME_PAGE = "docs/from_acme.md#agents"

# By package: what tfrl does not have yet, modules and the classes in them.
_NOT_YET = {
    "tfrl.experimental": ("examples",),
    "tfrl.agents": ("categorical_dqn", "CategoricalDqnAgent"),
    "tfrl.policies": ("qtopt_cem_policy", "CEMPolicy"),
    "tfrl.replay_buffers": ("rlds_to_reverb",),
}
# Programs in a clone of the repository, by the agent with examples in TF-Agents.
_EXAMPLES = {
    "ddpg": "train_td3",
    "dqn": "train_dqn",
    "ppo": "train_ppo",
    "reinforce": "train_reinforce",
    "sac": "train_sac",
    "td3": "train_td3",
}
# What stays out, and what to use instead.
_USE_INSTEAD = {
    "tfrl.bandits": "bandits are not part of tfrl",
    "tfrl.specs.bandit_spec_utils": "bandits are not part of tfrl",
    "tfrl.policies.py_tf_policy": "use tfrl.policies.py_tf_eager_policy",
    "tfrl.utils.session_utils": "TensorFlow 2 has no sessions",
    "tfrl.environments.examples": (
        "docs/environments.md shows how to write one, and tfrl.testing has small ones"
    ),
    **{
        f"tfrl.agents.{agent}.examples": (
            "the examples are in a clone of the repository, outside of the package; "
            f"run python -m examples.{program} there"
        )
        for agent, program in _EXAMPLES.items()
    },
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
# Agents of Acme, and what to use instead.
_ACME_AGENTS = {
    "tfrl.agents.bc": "use BehavioralCloningAgent",
    "tfrl.agents.bcq": "use IqlAgent or CqlSacAgent",
    "tfrl.agents.crr": "use IqlAgent or CqlSacAgent",
    "tfrl.agents.ddpg.DDPG": "use DdpgAgent, or d4pg.D4PG in an EnvironmentLoop",
    "tfrl.agents.dqfd": "use DqnAgent on a buffer filled from a recording",
    "tfrl.agents.dqn.DQN": "use DqnAgent or DdqnAgent",
    "tfrl.agents.impala.IMPALA": "use ImpalaAgent",
    "tfrl.agents.iqn": "networks.IQNHead is its network; there is no agent",
    "tfrl.agents.mcts": "there is no tree search",
    "tfrl.agents.mog_mpo": "use DmpoAgent, or dmpo.DistributionalMPO",
    "tfrl.agents.mompo": "losses.MultiObjectiveMPO is its loss; there is no agent",
    "tfrl.agents.r2d2": "use DqnAgent with a QRnnNetwork",
    "tfrl.agents.r2d3": "use DqnAgent with a QRnnNetwork, on a filled buffer",
    "tfrl.agents.svg0_prior": "use SacAgent",
    **dict.fromkeys(
        (
            "tfrl.agents.d4pg.D4PGLearner",
            "tfrl.agents.ddpg.DDPGLearner",
            "tfrl.agents.dmpo.DistributionalMPOLearner",
            "tfrl.agents.dqn.DQNLearner",
            "tfrl.agents.impala.IMPALALearner",
            "tfrl.agents.mpo.MPOLearner",
        ),
        "use learning.Learner, which trains any agent on the items of an adder",
    ),
    **dict.fromkeys(
        (
            "tfrl.agents.d4pg.DistributedD4PG",
            "tfrl.agents.ddpg.DistributedDDPG",
            "tfrl.agents.dmpo.DistributedDistributionalMPO",
            "tfrl.agents.dqn.DistributedDQN",
            "tfrl.agents.impala.DistributedIMPALA",
            "tfrl.agents.mpo.DistributedMPO",
        ),
        "docs/actor_learner.md trains an agent in several processes",
    ),
}
# Maps full names to the text that explains their absence.
NAMES = {
    **{
        f"{package}.{name}": _TF_AGENTS.format("it is not here yet", _TF_AGENTS_PAGE)
        for package, names in _NOT_YET.items()
        for name in names
    },
    **{
        name: _TF_AGENTS.format(reason, _TF_AGENTS_PAGE)
        for name, reason in _USE_INSTEAD.items()
    },
    **{name: _ACME.format(reason, _ACME_PAGE) for name, reason in _ACME_AGENTS.items()},
}


def install() -> None:
    """Makes imports of absent names say so; a second call does nothing."""
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.append(_Finder())


def attach_stub(
    package: str, filename: str
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Returns what `lazy_loader.attach_stub` returns, with AttributeErrors that say so.

    Args:
      package: The package, its `__name__`.
      filename: Its `__file__`, beside which the stub is.
    """
    load, names, public = lazy_loader.attach_stub(package, filename)

    def attribute(name: str) -> Any:
        explanation = NAMES.get(f"{package}.{name}")
        if explanation is not None:
            raise AttributeError(f"{package}.{name}: {explanation}")
        return load(name)

    return attribute, names, public


class _Finder(importlib.abc.MetaPathFinder):
    """Raises for names that no other finder knows.

    The import system also asks for the module `tfrl.agents.PPOAgent` if
    `from tfrl.agents import CategoricalDqnAgent` finds no such attribute.
    """

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: Any = None
    ) -> None:
        explanation = NAMES.get(fullname)
        if explanation is not None:
            raise ImportError(f"{fullname}: {explanation}", name=fullname)
