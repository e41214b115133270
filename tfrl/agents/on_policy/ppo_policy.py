"""The policy of agents with an actor and a critic that learn on-policy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import tensorflow as tf

from tfrl.agents import checks
from tfrl.agents.on_policy import distribution_params
from tfrl.networks import network as network_lib
from tfrl.networks import normalized_network
from tfrl.policies import actor_policy, utils
from tfrl.policies.acting import traced_action
from tfrl.specs import tensor_spec
from tfrl.trajectories import policy_step
from tfrl.trajectories import time_step as ts
from tfrl.typing import types
from tfrl.utils import nest_utils, variables

if TYPE_CHECKING:
    from tfrl.utils.tensor_normalizer import TensorNormalizer

ACTOR_STATE, VALUE_STATE = "actor_network_state", "value_network_state"


class PPOPolicy(actor_policy.ActorPolicy):
    """Samples actions, and records the distributions of these actions.

    With `collect`, `PolicyStep.info` is a dictionary with the entry `dist_params`: for
    each action a dictionary of the tensors that its distribution depends on. A masked
    distribution is recorded with its masked logits.

    The state is a dictionary with the state of each recurrent network, or `()` if
    neither network is recurrent. Only a policy that collects keeps the value network's
    state, so that values can be computed for whole sequences later.
    """

    def __init__(
        self,
        time_step_spec: ts.TimeStep,
        action_spec: types.NestedTensorSpec,
        actor_network: network_lib.Network,
        value_network: network_lib.Network,
        observation_normalizer: TensorNormalizer | None = None,
        clip: bool = True,
        collect: bool = True,
        compute_value_and_advantage_in_train: bool = False,
        *,
        training: bool = False,
        observation_and_action_constraint_splitter: types.Splitter | None = None,
        name: str | None = None,
        seed: int | None = None,
    ) -> None:
        """Creates the policy.

        Args:
          time_step_spec: A `TimeStep` of specs.
          action_spec: A nest of bounded specs.
          actor_network: A network that maps observations to a nest of distributions
            like `action_spec`.
          value_network: A network that maps observations to values `[B]`.
          observation_normalizer: Normalizes the observations of both networks.
          clip: Whether `action` clips to the bounds of `action_spec`. The recorded
            distribution is of actions before clipping.
          collect: Whether to record distributions.
          compute_value_and_advantage_in_train: Whether to omit the entry
            `value_prediction`, float32 `[B]`, from the info of a policy that collects.
          training: Whether the actor is called in training mode.
          observation_and_action_constraint_splitter: See `ActorPolicy`. The value
            network is given the first part of the observation.
          name: The module's name.
          seed: See `TFPolicy`.

        Raises:
          ValueError: The actor's output does not fit `action_spec` or is not a nest of
            distributions, or the value network's output is not one number per
            observation.
          NotImplementedError: See `ActorPolicy`.
        """
        observation_spec = utils.network_observation_spec(
            tensor_spec.from_spec(time_step_spec.observation),
            observation_and_action_constraint_splitter,
        )
        actor_network = network_lib.as_network(actor_network, observation_spec)
        value_network = network_lib.as_network(value_network, observation_spec)
        if observation_normalizer is not None:
            value_network = normalized_network.NormalizedNetwork(
                value_network, observation_normalizer, observation_spec
            )
        distribution_spec = actor_network.create_variables(observation_spec)
        checks.check_gives_distributions(actor_network, "PPOPolicy")
        nest_utils.assert_value_spec(
            value_network.create_variables(observation_spec), "value_network"
        )
        self._collect = collect
        self._emits_value = collect and not compute_value_and_advantage_in_train
        info_spec: Any = ()
        state_spec = {ACTOR_STATE: actor_network.state_spec}
        if collect:
            info_spec = {
                "dist_params": distribution_params.get_distribution_params_spec(
                    distribution_spec
                )
            }
            state_spec[VALUE_STATE] = value_network.state_spec
        if self._emits_value:
            info_spec["value_prediction"] = tf.TensorSpec([], tf.float32)
        state_spec = _without_empty(state_spec)
        super().__init__(
            time_step_spec,
            action_spec,
            actor_network,
            policy_state_spec=state_spec or (),
            info_spec=info_spec,
            observation_normalizer=observation_normalizer,
            clip=clip,
            training=training,
            observation_and_action_constraint_splitter=(
                observation_and_action_constraint_splitter
            ),
            name=name,
            seed=seed,
        )
        self._value_network = value_network

    def get_initial_value_state(
        self, batch_size: int | tf.Tensor | None
    ) -> types.NestedTensor:
        """Returns the initial state of the value network, `()` if it has none."""
        return self._value_network.get_initial_state(batch_size)

    def apply_value_network(
        self,
        observations: types.NestedTensor,
        step_types: tf.Tensor,
        value_state: types.NestedTensor = (),
        training: bool = False,
    ) -> tuple[tf.Tensor, types.NestedTensor]:
        """Returns the values of observations, and the new state of the value network.

        Args:
          observations: The nest of observations with their masks, `[B(, T), ...]`.
          step_types: `[B]` or `[B, T]`; the state is reset where it is FIRST.
          value_state: The state before the first step, `[B, ...]`; `()` stands for the
            initial state.
          training: Whether the network is called in training mode.

        Returns:
          The values, float32 `[B]` or `[B, T]`, and the state.
        """
        splitter = self._observation_and_action_constraint_splitter
        if splitter is not None:
            observations, _ = splitter(observations)
        values, value_state = self._value_network(
            observations,
            step_type=step_types,
            network_state=value_state,
            training=training,
        )
        # A Keras layer with one unit leaves a dimension of 1.
        if values.shape.rank > step_types.shape.rank:
            values = tf.squeeze(values, axis=-1)
        return tf.cast(values, tf.float32), value_state

    def _variables(self) -> Sequence[Any]:
        found = super()._variables()
        if not self._uses_value_network():
            return found
        # Both networks may share layers.
        return variables.as_tf_variables([*found, *self._value_network.variables])

    def _uses_value_network(self) -> bool:
        """Whether the info or the state of a step depends on the value network."""
        return self._emits_value or VALUE_STATE in self._policy_state_spec

    def _distribution(
        self, time_step: ts.TimeStep, policy_state: types.NestedTensor
    ) -> policy_step.PolicyStep:
        states: Any = policy_state or {}
        step = super()._distribution(time_step, states.get(ACTOR_STATE, ()))
        new_states = {ACTOR_STATE: step.state}
        info: dict[str, Any] = {}
        if self._collect:
            info["dist_params"] = distribution_params.get_distribution_params(
                step.action
            )
        if self._uses_value_network():
            value, new_states[VALUE_STATE] = self.apply_value_network(
                time_step.observation,
                time_step.step_type,
                states.get(VALUE_STATE, ()),
            )
            if self._emits_value:
                info["value_prediction"] = value
        return step._replace(state=_without_empty(new_states) or (), info=info or ())

    def _is_pure_tensorflow(self) -> bool:
        return (
            type(self) is PPOPolicy
            and self._observation_normalizer is None
            and self._observation_and_action_constraint_splitter is None
            and traced_action.has_known_layers(self._actor_network)
            and traced_action.has_known_layers(self._value_network)
        )


def _without_empty(states: dict[str, Any]) -> dict[str, Any]:
    return {name: state for name, state in states.items() if tf.nest.flatten(state)}
