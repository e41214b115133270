"""Explains failed imports of names that only TF-Agents or Acme has.

A finder at the end of `sys.meta_path` raises an ImportError that explains the absence,
for `import tfrl.policies.qtopt_cem_policy` and `from tfrl.policies import CEMPolicy`
alike. The packages in which names are missing take their attributes by `attach_stub`,
whose AttributeErrors say the same.
"""

from __future__ import annotations

import importlib.abc
import sys
from collections.abc import Callable, Sequence
from typing import Any

import lazy_loader

_TF_AGENTS = "TF-Agents has it, tfrl does not: {}."
_ACME = "Acme has it, tfrl does not: {}."
_NO_BANDITS = "bandits are not part of tfrl; keep TF-Agents for them"
_NO_QT_OPT = (
    "it is not here yet; train an actor for continuous actions, such as "
    "tfrl.agents.Td3Agent's"
)

# Maps an agent that has examples in TF-Agents to programs in a clone of the repository.
_EXAMPLES = {
    "ddpg": "train_td3",
    "dqn": "train_dqn",
    "ppo": "train_ppo",
    "reinforce": "train_reinforce",
    "sac": "train_sac",
    "td3": "train_td3",
}
# Maps names of TF-Agents to the reason for their absence, and to a replacement.
_OF_TF_AGENTS = {
    "tfrl.policies.qtopt_cem_policy": _NO_QT_OPT,
    "tfrl.policies.CEMPolicy": _NO_QT_OPT,
    "tfrl.policies.samplers": _NO_QT_OPT,
    "tfrl.agents.qtopt": _NO_QT_OPT,
    "tfrl.agents.QtOptAgent": _NO_QT_OPT,
    "tfrl.replay_buffers.rlds_to_reverb": (
        "it is not here yet; write the steps by an adder of tfrl.adders"
    ),
    "tfrl.experimental.examples": (
        "it is not here yet; tfrl.distribute runs actors and a learner"
    ),
    "tfrl.bandits": _NO_BANDITS,
    "tfrl.specs.bandit_spec_utils": _NO_BANDITS,
    "tfrl.utils.lazy_loader": "use the package lazy_loader",
    "tfrl.policies.py_tf_policy": "use tfrl.policies.py_tf_eager_policy",
    "tfrl.utils.session_utils": (
        "TensorFlow 2 has no sessions; call functions eagerly or as a tf.function"
    ),
    "tfrl.environments.examples": (
        "write one as a PyEnvironment, or use a small one of tfrl.testing"
    ),
    **{
        f"tfrl.agents.{agent}.examples": (
            "the examples are in a clone of the repository, outside of the package; "
            f"run {program} there"
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
# Agents of Acme, and their replacements.
_OF_ACME = {
    "tfrl.agents.bc": "use BehavioralCloningAgent",
    "tfrl.agents.bcq": "use IqlAgent or CqlSacAgent",
    "tfrl.agents.crr": "use IqlAgent or CqlSacAgent",
    "tfrl.agents.ddpg.DDPG": "use DdpgAgent, or d4pg.D4PG in an EnvironmentLoop",
    "tfrl.agents.dqfd": "use DqnAgent on a buffer filled from a recording",
    "tfrl.agents.dqn.DQN": "use DqnAgent or DdqnAgent",
    "tfrl.agents.impala.IMPALA": "use ImpalaAgent",
    "tfrl.agents.iqn.IQN": "use IqnAgent",
    "tfrl.agents.mcts": "there is no tree search",
    "tfrl.agents.mog_mpo": "use DmpoAgent, or dmpo.DistributionalMPO",
    "tfrl.agents.mompo": "losses.MultiObjectiveMPO is its loss; there is no agent",
    "tfrl.agents.r2d2.R2D2": "use R2d2Agent",
    "tfrl.agents.r2d3": "use R2d2Agent, on a filled buffer",
    "tfrl.agents.svg0_prior": "use SacAgent",
    **dict.fromkeys(
        (
            "tfrl.agents.d4pg.D4PGLearner",
            "tfrl.agents.ddpg.DDPGLearner",
            "tfrl.agents.dmpo.DistributionalMPOLearner",
            "tfrl.agents.dqn.DQNLearner",
            "tfrl.agents.impala.IMPALALearner",
            "tfrl.agents.mpo.MPOLearner",
            "tfrl.agents.r2d2.R2D2Learner",
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
            "tfrl.agents.r2d2.DistributedR2D2",
        ),
        "tfrl.distribute runs actors and a learner as processes",
    ),
}
# Maps full names to the text that explains their absence.
NAMES = {
    **{name: _TF_AGENTS.format(reason) for name, reason in _OF_TF_AGENTS.items()},
    **{name: _ACME.format(reason) for name, reason in _OF_ACME.items()},
}


def install() -> None:
    """Makes imports of absent names explain the absence; a second call does nothing."""
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.append(_Finder())


def attach_stub(
    package: str, filename: str
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Calls `lazy_loader.attach_stub`; its AttributeErrors then explain absent names.

    Args:
      package: The package, its `__name__`.
      filename: The package's `__file__`; the stub lies beside this file.
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
    `from tfrl.agents import DQN` finds no such attribute.
    """

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: Any = None
    ) -> None:
        explanation = NAMES.get(fullname)
        if explanation is not None:
            raise ImportError(f"{fullname}: {explanation}", name=fullname)
