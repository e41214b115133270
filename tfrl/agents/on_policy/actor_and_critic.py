"""The two networks of an on-policy agent, and the policies that apply them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import tensorflow as tf

from tfrl.agents import checks, normalization, target_networks, updates
from tfrl.agents.on_policy import distribution_params, ppo_policy, shared_torso
from tfrl.networks import network as network_lib
from tfrl.networks import sequential
from tfrl.policies import state_recording_policy, tf_policy
from tfrl.policies import utils as policy_utils
from tfrl.specs import tensor_spec
from tfrl.trajectories import time_step as ts
from tfrl.utils import actions, mixins, variables

if TYPE_CHECKING:
    from tfrl.agents import options
    from tfrl.agents.on_policy import on_policy_options
    from tfrl.typing import types


class ActorAndCritic(tf.Module, mixins.Untracked):
    """An actor, a critic and their policies, which share the networks.

    If both networks are `Sequential`s that begin with the same layers, an update
    computes these layers once.

    Attributes:
      state_spec: The nest of specs of the networks' states.
      actor_net: The actor. It normalizes the observations itself.
      value_net: The critic. It normalizes the observations itself.
      policy: Samples actions within their bounds.
      collect_policy: Collects, and records the distributions of its actions. Its
        actions stay unclipped, because the recorded distributions are of unclipped
        actions. It computes no values, because the agent computes them for whole
        sequences.
    """

    def __init__(
        self,
        time_step_spec: ts.TimeStep,
        action_spec: types.NestedTensorSpec,
        actor_net: types.Network | types.Layer,
        value_net: types.Network | types.Layer,
        on_policy: on_policy_options.OnPolicyOptions,
        agent: options.AgentOptions,
        *,
        collect_update_period: int = 1,
        records_policy_state: bool = False,
    ) -> None:
        """Builds the networks and the policies.

        Args:
          time_step_spec: A `TimeStep` of tensor specs.
          action_spec: A nest of bounded tensor specs.
          actor_net: Maps observations to a nest of distributions like `action_spec`.
          value_net: Maps observations to values `[B]`.
          on_policy: The splitter of observations, and the exploration.
          agent: The observation normalizer, and the seed of the policies.
          collect_update_period: See `OnPolicyAgent`.
          records_policy_state: See `OnPolicyAgent`.

        Raises:
          ValueError: A network's output does not match.
          TypeError: A network is missing.
        """
        super().__init__()
        _check_networks(actor_net=actor_net, value_net=value_net)
        splitter = on_policy.observation_and_action_constraint_splitter
        spec = policy_utils.network_observation_spec(
            time_step_spec.observation, splitter
        )
        self.actor_net, self.value_net = (
            network_lib.as_network(network, spec)
            for network in normalization.normalized_networks(
                agent.observation_normalizer, spec, actor_net, value_net
            )
        )
        self._collect_pairs = []
        collect_net = self.actor_net
        self._update: Callable[[], Any] | None = None
        if collect_update_period > 1:
            pair = target_networks.with_target(
                self.actor_net, None, "CollectActorNetwork", spec
            )
            self._collect_pairs, collect_net = [pair], pair[1]
            self._update = updates.make_updater([pair], 1.0, collect_update_period)

        def make_policy(network: Any, **kwargs: Any) -> ppo_policy.PPOPolicy:
            return ppo_policy.PPOPolicy(
                time_step_spec,
                action_spec,
                network,
                self.value_net,
                observation_and_action_constraint_splitter=splitter,
                seed=agent.seed,
                **kwargs,
            )

        self.collect_policy: tf_policy.TFPolicy = make_policy(
            collect_net, clip=False, compute_value_and_advantage_in_train=True
        )
        self._set_untracked("state_spec", self.collect_policy.policy_state_spec)
        if records_policy_state and self.collect_policy.is_recurrent:
            self.collect_policy = state_recording_policy.StateRecordingPolicy(
                self.collect_policy, seed=agent.seed
            )
        if on_policy.exploration is not None:
            self.collect_policy = on_policy.exploration(self.collect_policy)
            checks.check_collect_policy(self.collect_policy)
        self.policy = make_policy(self.actor_net, collect=False)
        torso = None
        shared = sequential.shared_layers(actor_net, value_net)
        if shared:
            torso = shared_torso.SharedTorso(
                shared,
                (actor_net, value_net),
                time_step_spec,
                action_spec,
                agent.observation_normalizer,
                splitter,
            )
        self._set_untracked("_torso", torso)
        self._train_policy = (
            make_policy(self.actor_net, collect=False, training=True)
            if torso is None
            else torso.policy
        )
        self._set_untracked("_action_spec", action_spec)
        self._set_untracked("_distribution_spec", self.actor_net.create_variables(spec))

    def outputs(
        self,
        time_steps: ts.TimeStep,
        policy_state: types.NestedTensor = (),
        training: bool = False,
    ) -> tuple[types.NestedDistribution, tf.Tensor]:
        """Returns the current policy's distributions and the critic's values.

        Args:
          time_steps: `[B, T, ...]`.
          policy_state: The collect policy's state before the first step, `[B, ...]`.
          training: Whether the networks are called in training mode.

        Returns:
          The nest of distributions with batch shape `[B, T]`, and the values `[B, T]`.
        """
        policy = self.policy
        if training:
            policy = self._train_policy
            if self._torso is not None:
                time_steps = self._torso.with_features(time_steps)
        return (
            self._distribution_by(policy, time_steps, policy_state),
            self._values_by(policy, time_steps, policy_state, training),
        )

    def distribution(
        self, time_steps: ts.TimeStep, policy_state: types.NestedTensor = ()
    ) -> types.NestedDistribution:
        """Returns the distributions of `outputs`, not in training mode."""
        return self._distribution_by(self.policy, time_steps, policy_state)

    def values(
        self,
        time_steps: types.TimeStep | types.Trajectory,
        policy_state: types.NestedTensor = (),
    ) -> tf.Tensor:
        """Returns the values of `outputs`, not in training mode; also of frames."""
        return self._values_by(self.policy, time_steps, policy_state)

    def _distribution_by(
        self, policy: ppo_policy.PPOPolicy, time_steps: Any, policy_state: Any
    ) -> types.NestedDistribution:
        state = self.collect_policy.network_state(policy_state)
        return policy.distribution(time_steps, state).action

    def _values_by(
        self,
        policy: ppo_policy.PPOPolicy,
        time_steps: Any,
        policy_state: Any,
        training: bool = False,
    ) -> tf.Tensor:
        state = self.collect_policy.network_state(policy_state) or {}
        values, _ = policy.apply_value_network(
            time_steps.observation,
            time_steps.step_type,
            state.get(ppo_policy.VALUE_STATE, ()),
            training=training,
        )
        return values

    def recorded(self, dist_params: types.NestedTensor) -> types.NestedDistribution:
        """Rebuilds the distributions whose parameters `collect_policy` recorded."""
        return distribution_params.distribution_from_spec(
            self._distribution_spec, dist_params
        )

    def entropy(self, distribution: types.NestedDistribution) -> tf.Tensor | None:
        """Returns the entropy, float32 `[B, T]`; None if it has no closed form."""
        if not _has_entropy(distribution):
            return None
        entropy = actions.entropy(distribution, self._action_spec, outer_rank=2)
        return tf.cast(entropy, tf.float32)

    def check_has_entropy(self, coefficient: float) -> None:
        """Raises a ValueError if the bonus needs an entropy that has no closed form.

        Args:
          coefficient: The weight of the bonus, for the message.
        """
        spec = self.policy.time_step_spec
        time_step = tensor_spec.zero_spec_nest(spec, outer_dims=[1])
        if not _has_entropy(self.policy.distribution(time_step).action):
            raise ValueError(
                f"entropy_regularization: got {coefficient}, but a distribution of "
                "actor_net has no entropy in closed form, like distributions that "
                "tanh squashes to bounds; give 0, or a network with other "
                "distributions, such as the normal distributions of an "
                "ActorDistributionNetwork."
            )

    def trained(self) -> list[Any]:
        """Returns the trainable variables of both networks, each once."""
        return variables.trainable_variables([self.actor_net, self.value_net])

    def initialize(self) -> None:
        """Copies the actor's weights to the actor of the collect policy."""
        updates.copy_weights(self._collect_pairs)

    def update_collect_policy(self) -> None:
        """Copies the weights in every `collect_update_period`-th call."""
        if self._update is not None:
            self._update()

    def all_variables(self) -> list[tf.Variable]:
        """Returns the variables that training changes: weights, copies, a counter."""
        networks = [self.actor_net, self.value_net]
        networks += [network for _, network in self._collect_pairs]
        return variables.as_tf_variables(
            [
                *(v for network in networks for v in network.variables),
                *getattr(self._update, "variables", tuple)(),
            ]
        )


def _check_networks(**networks: Any) -> None:
    for name, network in networks.items():
        if network is None:
            raise TypeError(
                f"{name}: got None, expected a network; make both networks with "
                "agents.ppo.ppo_networks.create_networks(observation_spec, "
                "action_spec)."
            )


def _has_entropy(distributions: Any) -> bool:
    """Whether all distributions of a nest have an entropy in closed form."""
    for distribution in tf.nest.flatten(distributions):
        try:
            distribution.entropy()
        except NotImplementedError:
            return False
    return True
