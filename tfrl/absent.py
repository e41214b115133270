"""Explains failed imports of names that only TF-Agents or Acme has.

A finder at the end of `sys.meta_path` raises an ImportError that explains the absence,
both for `import tfrl.policies.py_tf_policy` and for `from tfrl.policies import
py_tf_policy`. Packages with missing names get their attributes from `attach_stub`,
whose AttributeErrors say the same.
"""

from __future__ import annotations

import importlib.abc
import sys
from collections.abc import Callable, Sequence
from typing import Any

import lazy_loader

from tfrl import garbage, gone

_TF_AGENTS = "TF-Agents has it, tfrl does not: {}."
_ACME = "Acme has it, tfrl does not: {}."
# The agents that have examples in TF-Agents.
_WITH_EXAMPLES = ("ddpg", "dqn", "ppo", "reinforce", "sac", "td3")
# Maps names of TF-Agents to the reason for their absence, and to a replacement.
_OF_TF_AGENTS = {
    "tfrl.experimental.examples": "use tfrl.distribute, or `tfrl train sac`",
    "tfrl.bandits.policies.policy_utilities": (
        "use tfrl.policies.utils, as with TF-Agents 0.19"
    ),
    "tfrl.networks.dynamic_unroll_layer": (
        "use tfrl.keras_layers.dynamic_unroll_layer, as with TF-Agents 0.19"
    ),
    "tfrl.policies.py_tf_policy": "use tfrl.policies.py_tf_eager_policy",
    "tfrl.utils.session_utils": (
        "TensorFlow 2 has no sessions; call functions eagerly or as a tf.function"
    ),
    "tfrl.environments.examples.tic_tac_toe_environment": (
        "write one as a PyEnvironment, or use a small one of tfrl.testing"
    ),
    **{
        f"tfrl.agents.{agent}.examples": (
            f"run `tfrl train {agent}`, or read the examples in a clone of the "
            "repository"
        )
        for agent in _WITH_EXAMPLES
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
_LEARNER = "agents.tf.learning.Learner trains any agent on the items of an adder"
_DISTRIBUTED = "tfrl.distribute runs actors and a learner as processes"
_JAX = (
    "use an agent of tfrl.agents, such as DqnAgent or PPOAgent, in a loop of "
    "tfrl.train for a builder, and tfrl.train.Run or tfrl.distribute for an experiment"
)
_BUILDER = "use D4PG, whose arguments are the networks and the settings"
_NO_MULTIAGENT = "there is no training of several agents"
_REPLICATOR = "use tf.distribute with tfrl.train.StrategyLoop"
_ALIAS = "write Any, or a type of NumPy or TensorFlow"
_OF_MPO = "use tf.losses.MPO, which computes it"
_FAKE_ITERATOR = "use transition_dataset(environment).batch(n).as_numpy_iterator()"
_IQN = "use IQNHead after a torso, or tfrl.networks.ImplicitQuantileNetwork"
_VIDEO = "use VideoWrapper and override its render_frame"
_RECURRENT_CRITIC = "use tfrl.networks.CriticRnnNetwork and its agents"
# Names that Acme's tree leaves out, and their replacements.
_OF_ACME = {
    f"tfrl.acme.{name}": reason
    for name, reason in {
        "agents.tf.bc": f"use BehavioralCloningAgent; {_LEARNER}",
        "agents.tf.bcq": f"use IqlAgent or CqlSacAgent; {_LEARNER}",
        "agents.tf.crr": f"use IqlAgent or CqlSacAgent; {_LEARNER}",
        "agents.tf.ddpg": f"use DdpgAgent, or D4PG; {_LEARNER}; {_DISTRIBUTED}",
        "agents.tf.dqfd": "use DqnAgent on a buffer filled from a recording",
        "agents.tf.dqn": f"use DqnAgent or DdqnAgent; {_LEARNER}; {_DISTRIBUTED}",
        "agents.tf.impala": f"use ImpalaAgent; {_LEARNER}; {_DISTRIBUTED}",
        "agents.tf.iqn": f"use IqnAgent; {_LEARNER}",
        "agents.tf.mcts": "there is no tree search",
        "agents.tf.mog_mpo": "use DmpoAgent, or dmpo.DistributionalMPO",
        "agents.tf.mompo": (
            "tf.losses.MultiObjectiveMPO is its loss; there is no agent; use MpoAgent"
        ),
        "agents.tf.r2d2": f"use R2d2Agent; {_LEARNER}; {_DISTRIBUTED}",
        "agents.tf.r2d3": "use R2d2Agent, on a filled buffer",
        "agents.tf.svg0_prior": "use SacAgent",
        "agents.tf.d4pg.learning": _LEARNER,
        "agents.tf.d4pg.agent_distributed": _DISTRIBUTED,
        "agents.tf.d4pg.networks": "write the networks as in the page's quickstart",
        "agents.tf.d4pg.D4PGLearner": _LEARNER,
        "agents.tf.d4pg.DistributedD4PG": _DISTRIBUTED,
        "agents.tf.d4pg.make_default_networks": "write them as in the quickstart",
        "agents.tf.dmpo.learning": _LEARNER,
        "agents.tf.dmpo.agent_distributed": _DISTRIBUTED,
        "agents.tf.dmpo.DistributionalMPOLearner": _LEARNER,
        "agents.tf.dmpo.DistributedDistributionalMPO": _DISTRIBUTED,
        "agents.tf.mpo.learning": _LEARNER,
        "agents.tf.mpo.agent_distributed": _DISTRIBUTED,
        "agents.tf.mpo.MPOLearner": _LEARNER,
        "agents.tf.mpo.DistributedMPO": _DISTRIBUTED,
        "agents.jax": _JAX,
        "jax": _JAX,
        "agents.replay": "write the tables and datasets as in the page's example",
        "environment_loops": "there is no OpenSpiel; use EnvironmentLoop",
        "multiagent": _NO_MULTIAGENT,
        "datasets.tfds": "use tfrl.datasets, which reads recordings and Minari's files",
        "testing.multiagent_fakes": _NO_MULTIAGENT,
        "testing.test_utils": "use tempfile, or tmp_path of pytest",
        "testing.fakes.Actor": "write a core.Actor of your own",
        "testing.fakes.Learner": "write a core.Learner of your own",
        "testing.fakes.VariableSource": "write a core.VariableSource of your own",
        "testing.fakes.fake_atari_wrapped": "use fakes.DiscreteEnvironment",
        "testing.fakes.rlds_dataset_from_env_spec": "use tfrl.datasets",
        "testing.fakes.transition_iterator": _FAKE_ITERATOR,
        "testing.fakes.transition_iterator_from_spec": _FAKE_ITERATOR,
        "utils.async_utils": "use concurrent.futures",
        "utils.loggers.image": "write pictures by Pillow",
        "utils.lp_utils": _DISTRIBUTED,
        "utils.metrics": "there is no record of uses",
        "utils.reverb_utils": "write it with tfrl.replay_service's Table",
        "utils.signals": "use CheckpointingRunner, which SIGTERM and others stop",
        "wrappers.atari_wrapper_dopamine": "use AtariWrapper, or suite_atari",
        "wrappers.mujoco": "use tfrl.environments.suite_mujoco",
        "wrappers.multiagent_dict_key_wrapper": _NO_MULTIAGENT,
        "wrappers.multigrid_wrapper": _NO_MULTIAGENT,
        "wrappers.open_spiel_wrapper": "there is no OpenSpiel",
        "tf.networks.IQNNetwork": _IQN,
        "tf.networks.CriticDeepRNN": _RECURRENT_CRITIC,
        "tf.networks.RecurrentExpQWeightedPolicy": _RECURRENT_CRITIC,
        "wrappers.MujocoVideoWrapper": _VIDEO,
        "wrappers.OpenSpielWrapper": "there is no OpenSpiel",
        # Names in modules that are here.
        "adders.reverb.base.StartOfEpisodeType": "write bool",
        "adders.reverb.base.spec_like_to_tensor_spec": "use the adder's signature",
        "agents.tf.d4pg.agent.D4PGBuilder": _BUILDER,
        "agents.tf.d4pg.agent.D4PGConfig": _BUILDER,
        "agents.tf.d4pg.agent.D4PGNetworks": _BUILDER,
        "agents.tf.d4pg.agent.Replicator": _REPLICATOR,
        "agents.tf.d4pg.agent.get_replicator": _REPLICATOR,
        "core.PrefetchingIterator": "use the prefetch of a tf.data.Dataset",
        "datasets.reverb.Transform": _ALIAS,
        "tf.losses.mompo.compute_weights_and_temperature_loss": _OF_MPO,
        "tf.losses.mpo.compute_cross_entropy_loss": _OF_MPO,
        "tf.losses.mpo.compute_nonparametric_kl_from_normalized_weights": _OF_MPO,
        "tf.losses.mpo.compute_parametric_kl_penalty_and_dual_loss": _OF_MPO,
        "tf.losses.mpo.compute_weights_and_temperature_loss": _OF_MPO,
        "tf.networks.atari.Images": _ALIAS,
        "tf.networks.atari.Logits": _ALIAS,
        "tf.networks.atari.QValues": _ALIAS,
        "tf.networks.atari.Value": _ALIAS,
        "tf.networks.continuous.ResidualLayernormWrapper": (
            "write keras.layers.LayerNormalization and keras.layers.Add"
        ),
        "tf.networks.multihead.TensorTransformation": _ALIAS,
        "tf.networks.multiplexers.TensorTransformation": _ALIAS,
        "tf.networks.quantile.IQNNetwork": _IQN,
        "tf.networks.recurrence.CriticDeepRNN": _RECURRENT_CRITIC,
        "tf.networks.recurrence.PolicyCriticRNNState": _RECURRENT_CRITIC,
        "tf.networks.recurrence.RNNState": _ALIAS,
        "tf.networks.recurrence.RNNUnpackWrapper": _RECURRENT_CRITIC,
        "tf.networks.recurrence.RecurrentExpQWeightedPolicy": _RECURRENT_CRITIC,
        "tf.networks.vision.ResidualBlockGroup": "use ResNetTorso",
        "utils.paths.ACME_ID": "use the environment variable TFRL_ID",
        "wrappers.atari_wrapper.BaseAtariWrapper": "use AtariWrapper",
        "wrappers.atari_wrapper.LIVES_INDEX": "use atari_wrapper.LIVES",
        "wrappers.atari_wrapper.NUM_COLOR_CHANNELS": "write 3",
        "wrappers.atari_wrapper.RGB_INDEX": "use atari_wrapper.SCREEN",
        "wrappers.video.MujocoVideoWrapper": _VIDEO,
    }.items()
}
# Maps full names to the text that explains their absence.
NAMES = {
    **gone.NAMES,
    **{name: _TF_AGENTS.format(reason) for name, reason in _OF_TF_AGENTS.items()},
    **{name: _ACME.format(reason) for name, reason in _OF_ACME.items()},
}


def install() -> None:
    """Makes failed imports of absent names explain why; a second call does nothing."""
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, gone.Finder(explained))
        sys.meta_path.append(_Finder())


def attach_stub(
    package: str, filename: str
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Calls `lazy_loader.attach_stub`; its AttributeErrors then explain absent names.

    Args:
      package: The package, its `__name__`.
      filename: The package's `__file__`; the stub is next to this file.
    """
    load, names, public = lazy_loader.attach_stub(package, filename)

    def attribute(name: str) -> Any:
        _refuse_absent(package, name)
        with garbage.uncollected():
            return load(name)

    return attribute, names, public


def explained(module: str) -> tuple[Callable[[str], Any], list[str]]:
    """Returns `__getattr__` and `__path__` of a module that is not a package.

    The import system asks finders for a name in a module only if the module has a
    `__path__`; an empty one makes it find no files.

    Args:
      module: The module, its `__name__`.
    """

    def attribute(name: str) -> Any:
        _refuse_absent(module, name)
        raise AttributeError(f"module {module!r} has no attribute {name!r}")

    return attribute, []


def _refuse_absent(module: str, name: str) -> None:
    if text := explanation(f"{module}.{name}"):
        raise AttributeError(f"{module}.{name}: {text}")


def explanation(full_name: str) -> str | None:
    """Returns the text that explains the absence of a name; None for other names.

    The classes of algorithms, which tfrl itself exports, are looked for beside agents.
    """
    package, _, name = full_name.rpartition(".")
    if (
        package == "tfrl.agents"
        and name[:1].isupper()
        and name in sys.modules["tfrl"].__all__  # An import would be a circle.
    ):
        return (
            f"use tfrl.{name}, the whole algorithm, or the class of an agent alone, "
            "with TF-Agents' interface, such as DqnAgent or PPOAgent."
        )
    return NAMES.get(full_name)


class _Finder(importlib.abc.MetaPathFinder):
    """Raises for names that no other finder knows.

    The import system also looks for the module `tfrl.agents.DQN` if `from tfrl.agents
    import DQN` finds no such attribute.
    """

    def find_spec(
        self, fullname: str, _path: Sequence[str] | None, _target: Any = None
    ) -> None:
        if text := explanation(fullname):
            raise ImportError(f"{fullname}: {text}", name=fullname)
