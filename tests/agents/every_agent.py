"""Every agent of the package, small, for tests of what agents have in common.

`KINDS` is the one list of them. A kind says which of the common features make no sense
for its agent, and why. `FAMILIES` has one of each family, for fast tests.
"""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import keras
import tensorflow as tf

from tfrl import agents, networks, policies
from tfrl.networks.layers import bodies, preprocessing
from tfrl.policies.samplers import qtopt_cem_actions_sampler_continuous as continuous
from tfrl.specs import tensor_spec

CHOICE = tensor_spec.BoundedTensorSpec([], tf.int32, 0, 2, name="choice")
FORCE = tensor_spec.BoundedTensorSpec([2], tf.float32, -1.0, 1.0, name="force")
TANH_NORMAL = {"continuous_projection_net": agents.sac.TanhNormalProjectionNetwork}


@dataclasses.dataclass(frozen=True)
class Parts:
    """Makes networks with the default preprocessing of observations.

    Attributes:
      specs: The specs of the observations and of the actions.
      layers: The units of the dense layers.
      seed: The seed of the networks of observations; the others add a number to it.
    """

    specs: tuple[Any, Any]
    layers: tuple[int, ...]
    seed: int

    def q(self):
        return self._make(networks.QNetwork, *self.specs, fc_layer_params=self.layers)

    def atoms(self, **kwargs):
        network = networks.CategoricalQNetwork
        return self._make(
            network, *self.specs, 7, fc_layer_params=self.layers, **kwargs
        )

    def rainbow(self):
        return self.atoms(dueling_layer_params=(5,), noisy_stddev=0.5)

    def quantiles(self):
        network = networks.QuantileQNetwork
        return self._make(network, *self.specs, 5, fc_layer_params=self.layers)

    def implicit_quantiles(self):
        network = networks.ImplicitQuantileNetwork
        return self._make(network, *self.specs, 4, fc_layer_params=self.layers)

    def normalized_q(self):
        """A Q-network with layer normalization."""
        return self._make(
            networks.QNetwork, *self.specs, fc_layer_params=self.layers, layer_norm=True
        )

    def recurrent_q(self):
        return self._make(networks.QRnnNetwork, *self.specs, lstm_size=(5,))

    def actor(self):
        network = networks.ActorNetwork
        return self._make(network, *self.specs, fc_layer_params=self.layers)

    def recurrent_actor(self):
        return self._make(
            networks.ActorRnnNetwork,
            *self.specs,
            input_fc_layer_params=None,
            lstm_size=(6,),
            output_fc_layer_params=(5,),
        )

    def distributions(self, **kwargs):
        network = networks.ActorDistributionNetwork
        return self._make(network, *self.specs, fc_layer_params=self.layers, **kwargs)

    def squashed(self):
        return self.distributions(**TANH_NORMAL)

    def with_state_dependent_noise(self):
        projection = networks.StateDependentNoiseProjectionNetwork
        return self.distributions(continuous_projection_net=projection)

    def recurrent_distributions(self, **kwargs):
        network = networks.ActorDistributionRnnNetwork
        return self._make(network, *self.specs, lstm_size=(5,), **kwargs)

    def recurrent_squashed(self):
        return self.recurrent_distributions(**TANH_NORMAL)

    def value(self):
        network = networks.ValueNetwork
        return self._make(network, self.specs[0], fc_layer_params=self.layers, seed=3)

    def recurrent_value(self):
        network = networks.ValueRnnNetwork
        return self._make(network, self.specs[0], lstm_size=(4,), seed=3)

    def critic(self, **kwargs):
        network = networks.CriticNetwork
        return self._make(
            network, self.specs, joint_fc_layer_params=self.layers, seed=1, **kwargs
        )

    def normal(self):
        """Normal distributions that a network predicts with their deviations."""
        return self.distributions(
            continuous_projection_net=functools.partial(
                networks.NormalProjectionNetwork, state_dependent_std=True
            )
        )

    def distributional_critic(self):
        return networks.Sequential(
            [
                networks.CriticMultiplexer(),
                networks.LayerNormMLP(self.layers, activate_final=True),
                networks.DiscreteValuedHead(vmin=-3.0, vmax=3.0, num_atoms=7),
            ],
            seed=self.seed + 1,
        )

    def recurrent_critic(self):
        return self._make(
            networks.CriticRnnNetwork,
            self.specs,
            observation_fc_layer_params=None,
            action_fc_layer_params=(6,),
            joint_fc_layer_params=(5,),
            lstm_size=(4,),
            output_fc_layer_params=(3,),
            seed=1,
        )

    def ensemble(self, *sizes, **kwargs):
        network = networks.CriticEnsembleNetwork
        layers = {"fc_layer_params": self.layers}
        return self._make(network, self.specs, *sizes, seed=1, **layers, **kwargs)

    def embedded(self):
        """MR.Q's networks."""
        return agents.mrq.make_networks(
            *self.specs, hidden_size=self.layers[0], seed=self.seed
        )

    def _make(self, network, *args, seed=0, **kwargs):
        layers, combiner = preprocessing.default_preprocessing(self.specs[0])
        return network(
            *args,
            preprocessing_layers=layers,
            preprocessing_combiner=combiner,
            seed=self.seed + seed,
            **kwargs,
        )


@dataclasses.dataclass(frozen=True)
class Kind:
    """A kind of agent.

    Attributes:
      agent: The agent's class.
      networks: Makes the networks that stand behind the specs in its arguments.
      num_optimizers: The number of optimizers that stand behind the networks.
      action_spec: An action that the agent takes.
      arguments: Makes further arguments.
      without_td_error: Why prioritized replay has nothing to go by; empty if it has.
      without_weights: Why there is nothing to train and to save; empty if there is.
    """

    agent: type[agents.TFAgent]
    networks: Callable[[Parts], list[networks.Network]]
    num_optimizers: int
    action_spec: tf.TypeSpec
    arguments: Callable[[Parts], dict[str, Any]] = lambda parts: {}
    without_td_error: str = ""
    without_weights: str = ""

    def make(
        self, time_step_spec, action_spec=None, layers=(6,), seed=1, rate=1e-2, **kwargs
    ):
        """Returns a new agent, the same in every call.

        Args:
          time_step_spec: The specs of its time steps.
          action_spec: The specs of its actions; `self.action_spec` if None.
          layers: See `Parts`.
          seed: The seed of the networks, and of the agent.
          rate: The learning rate of each optimizer, Adam.
          **kwargs: Further arguments of the agent.
        """
        if action_spec is None:
            action_spec = self.action_spec
        parts = Parts((time_step_spec.observation, action_spec), layers, seed)
        optimizers = [keras.optimizers.Adam(rate) for _ in range(self.num_optimizers)]
        arguments = {**self.arguments(parts), **kwargs}
        if not self.without_weights:
            name = "random_seed" if self.agent is agents.CqlSacAgent else "seed"
            arguments.setdefault(name, seed)
        agent = self.agent(
            time_step_spec,
            action_spec,
            *self.networks(parts),
            *optimizers,
            **arguments,
        )
        agent.initialize()
        return agent


def _always(**arguments):
    return lambda parts: arguments


def _actor_critic(**arguments):
    return lambda p: {
        "actor_net": p.distributions(),
        "value_net": p.value(),
        "normalize_observations": False,
        "num_epochs": 1,
        **arguments,
    }


_RETURNS = "it learns from whole episodes' returns, not from values of single steps"
_NO_VALUES = "it predicts actions and no values"
_NOTHING = "train only counts"
_SEQUENCES = "its values are of imagined steps, not of recorded ones"
# Policies that are deterministic.
_SAC = _always(greedy_eval=True, target_update_tau=0.5)
# Some corrections of batch renormalization from the second update on.
_RENORMED = functools.partial(bodies.batch_renormed, warm_up=1)
# A copy in every update, and sequences as long as those of other agents.
_SHORT_PERIODS = {"target_update_period": 1, "horizon": 1, "n_step_update": 1}
_DREAMER = _always(
    sizes=agents.dreamer.Sizes(
        deter=8, units=6, hidden=6, classes=3, depth=2, stoch=2, blocks=2
    ),
    imagination_length=3,
    free_nats=0.0,
)
_MPO = _always(target_update_tau=0.5, target_update_period=1, num_samples=3)

KINDS = {
    "DqnAgent": Kind(agents.DqnAgent, lambda p: [p.q()], 1, CHOICE),
    "DqnAgent-recurrent": Kind(agents.DqnAgent, lambda p: [p.recurrent_q()], 1, CHOICE),
    "DdqnAgent": Kind(
        agents.DdqnAgent,
        lambda p: [p.q()],
        1,
        CHOICE,
        _always(target_update_tau=0.5),
    ),
    "CategoricalDqnAgent": Kind(
        agents.CategoricalDqnAgent, lambda p: [p.atoms()], 1, CHOICE
    ),
    "CategoricalDqnAgent-rainbow": Kind(
        agents.CategoricalDqnAgent,
        lambda p: [p.rainbow()],
        1,
        CHOICE,
        _always(double_q=True, target_update_tau=0.5),
    ),
    "QrDqnAgent": Kind(agents.QrDqnAgent, lambda p: [p.quantiles()], 1, CHOICE),
    "IqnAgent": Kind(
        agents.IqnAgent,
        lambda p: [p.implicit_quantiles()],
        1,
        CHOICE,
        _always(
            num_quantiles=3,
            num_target_quantiles=4,
            munchausen=agents.dqn.Munchausen(),
        ),
    ),
    "R2d2Agent-recurrent": Kind(
        agents.R2d2Agent,
        lambda p: [p.recurrent_q()],
        1,
        CHOICE,
        _always(burn_in_length=1, n_step_update=2, target_update_tau=0.5),
    ),
    "ReinforceAgent": Kind(
        agents.ReinforceAgent,
        lambda p: [p.distributions()],
        1,
        CHOICE,
        lambda p: {"value_network": p.value()},
        without_td_error=_RETURNS,
    ),
    "A2CAgent": Kind(
        agents.A2CAgent,
        lambda p: [],
        1,
        CHOICE,
        lambda p: {"actor_net": p.distributions(), "value_net": p.value()},
        without_td_error=_RETURNS,
    ),
    "PPOAgent": Kind(
        agents.PPOAgent,
        lambda p: [],
        1,
        FORCE,
        _actor_critic(),
        without_td_error=_RETURNS,
    ),
    "PPOClipAgent": Kind(
        agents.PPOClipAgent,
        lambda p: [],
        1,
        CHOICE,
        _actor_critic(
            importance_ratio_clipping=0.2,
            use_gae=True,
            use_td_lambda_return=True,
            compute_value_and_advantage_in_train=False,
            update_normalizers_in_train=False,
        ),
        without_td_error=_RETURNS,
    ),
    "PPOClipAgent-recurrent": Kind(
        agents.PPOClipAgent,
        lambda p: [],
        1,
        CHOICE,
        lambda p: {
            **_actor_critic()(p),
            "actor_net": p.recurrent_distributions(),
            "value_net": p.recurrent_value(),
        },
        without_td_error=_RETURNS,
    ),
    "PPOKLPenaltyAgent": Kind(
        agents.PPOKLPenaltyAgent,
        lambda p: [],
        0,
        CHOICE,
        # The optimizer comes after required arguments.
        lambda p: {
            **_actor_critic()(p),
            "optimizer": keras.optimizers.Adam(1e-2),
            "initial_adaptive_kl_beta": 1.0,
            "adaptive_kl_target": 0.01,
            "adaptive_kl_tolerance": 0.3,
        },
        without_td_error=_RETURNS,
    ),
    "ImpalaAgent": Kind(
        agents.ImpalaAgent,
        lambda p: [],
        1,
        CHOICE,
        lambda p: {
            "actor_net": p.distributions(),
            "value_net": p.value(),
        },
        without_td_error=_RETURNS,
    ),
    "ImpalaAgent-recurrent": Kind(
        agents.ImpalaAgent,
        lambda p: [],
        1,
        CHOICE,
        lambda p: {
            "actor_net": p.recurrent_distributions(),
            "value_net": p.recurrent_value(),
        },
        without_td_error=_RETURNS,
    ),
    "PqnAgent": Kind(
        agents.PqnAgent,
        lambda p: [p.normalized_q()],
        1,
        CHOICE,
        without_td_error=_RETURNS,
    ),
    "DdpgAgent": Kind(
        agents.DdpgAgent,
        lambda p: [p.actor(), p.critic()],
        2,
        FORCE,
        _always(target_update_tau=0.5),
    ),
    "DdpgAgent-recurrent": Kind(
        agents.DdpgAgent,
        lambda p: [p.recurrent_actor(), p.recurrent_critic()],
        2,
        FORCE,
        _always(target_update_tau=0.5),
    ),
    "D4pgAgent": Kind(
        agents.D4pgAgent,
        lambda p: [p.actor(), p.distributional_critic()],
        2,
        FORCE,
        _always(n_step_update=1, target_update_tau=0.5, target_update_period=1),
    ),
    "Td3Agent": Kind(
        agents.Td3Agent,
        lambda p: [p.actor(), p.critic()],
        2,
        FORCE,
        _always(target_update_tau=0.5),
    ),
    "SacAgent": Kind(
        agents.SacAgent, lambda p: [p.critic(), p.squashed()], 3, FORCE, _SAC
    ),
    "SacAgent-recurrent": Kind(
        agents.SacAgent,
        lambda p: [p.recurrent_critic(), p.recurrent_squashed()],
        3,
        FORCE,
        _SAC,
    ),
    "SacAgent-ensemble": Kind(
        agents.SacAgent,
        lambda p: [p.ensemble(3), p.with_state_dependent_noise()],
        3,
        FORCE,
        _always(greedy_eval=True, target_update_tau=0.5, num_min=2),
    ),
    "DroqAgent": Kind(
        agents.DroqAgent,
        lambda p: [p.ensemble(2, dropout=0.2, layer_norm=True), p.squashed()],
        3,
        FORCE,
        _always(greedy_eval=True, target_update_tau=0.5, actor_update_period=2),
    ),
    "TqcAgent": Kind(
        agents.TqcAgent, lambda p: [p.ensemble(2, 3), p.squashed()], 3, FORCE, _SAC
    ),
    "CrossQAgent": Kind(
        agents.CrossQAgent,
        lambda p: [
            p.ensemble(2, body=_RENORMED),
            p.distributions(body=_RENORMED, **TANH_NORMAL),
        ],
        3,
        FORCE,
        _always(greedy_eval=True, actor_update_period=2),
    ),
    "DiscreteSacAgent": Kind(
        agents.DiscreteSacAgent, lambda p: [p.q(), p.distributions()], 3, CHOICE, _SAC
    ),
    "MpoAgent": Kind(
        agents.MpoAgent, lambda p: [p.normal(), p.critic()], 3, FORCE, _MPO
    ),
    "DmpoAgent": Kind(
        agents.DmpoAgent,
        lambda p: [p.normal(), p.distributional_critic()],
        3,
        FORCE,
        _MPO,
    ),
    "MrqAgent": Kind(
        agents.MrqAgent, lambda p: p.embedded(), 3, FORCE, _always(**_SHORT_PERIODS)
    ),
    "MrqAgent-discrete": Kind(
        agents.MrqAgent, lambda p: p.embedded(), 3, CHOICE, _always(**_SHORT_PERIODS)
    ),
    "DreamerAgent": Kind(
        agents.DreamerAgent,
        lambda p: [],
        1,
        FORCE,
        _DREAMER,
        without_td_error=_SEQUENCES,
    ),
    "DreamerAgent-discrete": Kind(
        agents.DreamerAgent,
        lambda p: [],
        1,
        CHOICE,
        _DREAMER,
        without_td_error=_SEQUENCES,
    ),
    "QtOptAgent": Kind(
        agents.QtOptAgent,
        lambda p: [p.critic()],
        1,
        FORCE,
        lambda p: {
            "actions_sampler": continuous.GaussianActionsSampler(p.specs[1]),
            "num_samples_cem": 8,
            "target_update_tau": 0.5,
            "delayed_target_update_period": 1,
        },
    ),
    "BehavioralCloningAgent": Kind(
        agents.BehavioralCloningAgent,
        lambda p: [p.q()],
        1,
        CHOICE,
        _always(num_outer_dims=2),
        without_td_error=_NO_VALUES,
    ),
    "BehavioralCloningAgent-continuous": Kind(
        agents.BehavioralCloningAgent,
        lambda p: [p.actor()],
        1,
        FORCE,
        _always(num_outer_dims=2),
        without_td_error=_NO_VALUES,
    ),
    "CqlSacAgent": Kind(
        agents.CqlSacAgent,
        lambda p: [p.critic(), p.squashed()],
        3,
        FORCE,
        _always(
            greedy_eval=True,
            target_update_tau=0.5,
            cql_alpha=1.0,
            num_cql_samples=2,
            include_critic_entropy_term=True,
            use_lagrange_cql_alpha=True,
        ),
    ),
    "Td3BcAgent": Kind(
        agents.Td3BcAgent,
        lambda p: [p.actor(), p.critic()],
        2,
        FORCE,
        _always(target_update_tau=0.5),
    ),
    "RebracAgent": Kind(
        agents.RebracAgent,
        lambda p: [p.actor(), p.critic(body=bodies.layer_normed)],
        2,
        FORCE,
        _always(target_update_tau=0.5),
    ),
    "EdacAgent": Kind(
        agents.EdacAgent, lambda p: [p.ensemble(3), p.squashed()], 3, FORCE, _SAC
    ),
    "IqlAgent": Kind(
        agents.IqlAgent,
        lambda p: [p.critic(), p.value(), p.distributions()],
        3,
        FORCE,
    ),
    "IqlAgent-discrete": Kind(
        agents.IqlAgent,
        lambda p: [p.q(), p.value(), p.distributions()],
        3,
        CHOICE,
    ),
    "CqlDqnAgent": Kind(
        agents.CqlDqnAgent,
        lambda p: [p.q()],
        1,
        CHOICE,
        _always(target_update_tau=0.5),
    ),
    "RandomAgent": Kind(
        agents.RandomAgent,
        lambda p: [],
        0,
        CHOICE,
        without_td_error=_NOTHING,
        without_weights=_NOTHING,
    ),
    "FixedPolicyAgent": Kind(
        agents.FixedPolicyAgent,
        lambda p: [],
        0,
        CHOICE,
        _always(policy_class=functools.partial(policies.FixedPolicy, 1)),
        without_td_error=_NOTHING,
        without_weights=_NOTHING,
    ),
}

# One agent of each family, whose code the others of the family share: a question that
# fast tests ask of all agents is slow for the others.
FAMILIES = (
    "DqnAgent",
    "IqnAgent",
    "R2d2Agent-recurrent",
    "ReinforceAgent",
    "PPOAgent",
    "ImpalaAgent",
    "PqnAgent",
    "Td3Agent",
    "SacAgent",
    "MpoAgent",
    "MrqAgent",
    "BehavioralCloningAgent",
    "IqlAgent",
)
