"""The policy of an actor network, which outputs actions or their distributions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from tfrl.networks import network, normalized_network
from tfrl.policies import tf_policy, utils
from tfrl.policies.acting import traced_action, validation
from tfrl.specs import tensor_spec
from tfrl.trajectories import policy_step
from tfrl.trajectories import time_step as ts
from tfrl.typing import types


class ActorPolicy(tf_policy.TFPolicy):
    """Acts with a network that maps observations to actions or their distributions."""

    def __init__(
        self,
        time_step_spec: ts.TimeStep,
        action_spec: types.NestedTensorSpec,
        actor_network: network.Network,
        policy_state_spec: types.NestedTensorSpec = (),
        info_spec: types.NestedTensorSpec = (),
        observation_normalizer: Any = None,
        clip: bool = True,
        training: bool = False,
        observation_and_action_constraint_splitter: types.Splitter | None = None,
        name: str | None = None,
        *,
        emit_log_probability: bool = False,
        seed: int | None = None,
    ) -> None:
        """Creates the policy.

        Args:
          time_step_spec: A `TimeStep` of specs.
          action_spec: A nest of bounded specs.
          actor_network: A network, or Keras layer or model, whose output has the
            structure of `action_spec`: TFP distributions, or the actions themselves.
          policy_state_spec: A nest of specs; by default the network's `state_spec`.
          info_spec: A nest of specs of `PolicyStep.info`.
          observation_normalizer: An object whose `normalize(observation)` is applied to
            the network's input, such as a `TensorNormalizer`.
          clip: Whether `action` clips to the bounds of `action_spec`.
          training: Whether the network is called in training mode.
          observation_and_action_constraint_splitter: See `TFPolicy`; the network is
            given the mask as the argument `mask`. It needs one discrete action spec,
            which may have several choices.
          name: The module's name.
          emit_log_probability: See `TFPolicy`. An action that the network gives without
            a distribution has log-probability 0.
          seed: See `TFPolicy`.

        Raises:
          TypeError: `actor_network` is neither a network nor a Keras layer.
          ValueError: The network's output does not fit `action_spec`.
          NotImplementedError: There is a splitter, but `action_spec` is not one
            discrete spec.
        """
        validation.check_time_step_spec(time_step_spec)
        action_spec = tensor_spec.from_spec(action_spec)
        splitter = observation_and_action_constraint_splitter
        if splitter is not None:
            _check_maskable(action_spec)
        actor_network = network.as_network(actor_network)
        if observation_normalizer is not None:
            actor_network = normalized_network.NormalizedNetwork(
                actor_network, observation_normalizer
            )
        output_spec = actor_network.create_variables(
            utils.network_observation_spec(
                tensor_spec.from_spec(time_step_spec.observation), splitter
            )
        )
        _check_output(output_spec, action_spec, actor_network.name)
        super().__init__(
            time_step_spec,
            action_spec,
            policy_state_spec=policy_state_spec or actor_network.state_spec,
            info_spec=info_spec,
            clip=clip,
            emit_log_probability=emit_log_probability,
            observation_and_action_constraint_splitter=splitter,
            name=name,
            seed=seed,
        )
        self._actor_network = actor_network
        self._observation_normalizer = observation_normalizer
        self._training = training

    @property
    def observation_normalizer(self) -> Any:
        """The normalizer of the observations, or None."""
        return self._observation_normalizer

    def _variables(self) -> Sequence[Any]:
        return self._actor_network.variables

    def _is_pure_tensorflow(self) -> bool:
        return (
            type(self) is ActorPolicy
            and self._observation_normalizer is None
            and self._observation_and_action_constraint_splitter is None
            and traced_action.has_known_layers(self._actor_network)
        )

    def _apply_actor_network(
        self,
        observation: types.NestedTensor,
        step_type: tf.Tensor,
        policy_state: types.NestedTensor,
        mask: tf.Tensor | None = None,
    ) -> tuple[Any, types.NestedTensor]:
        extra = {} if mask is None else {"mask": mask}
        return self._actor_network(
            observation,
            step_type=step_type,
            network_state=policy_state,
            training=self._training,
            **extra,
        )

    def _actions_or_distributions(
        self, time_step: ts.TimeStep, policy_state: types.NestedTensor
    ) -> tuple[Any, types.NestedTensor]:
        observation, mask = time_step.observation, None
        if self._observation_and_action_constraint_splitter is not None:
            observation, mask = self._observation_and_action_constraint_splitter(
                observation
            )
        return self._apply_actor_network(
            observation,
            step_type=time_step.step_type,
            policy_state=policy_state,
            mask=mask,
        )

    def _greedy_action(
        self, time_step: ts.TimeStep, policy_state: types.NestedTensor
    ) -> policy_step.PolicyStep:
        outputs, policy_state = self._actions_or_distributions(time_step, policy_state)
        action = tf.nest.map_structure(utils.distribution_mode, outputs)
        return policy_step.PolicyStep(action, policy_state)

    def _distribution(
        self, time_step: ts.TimeStep, policy_state: types.NestedTensor
    ) -> policy_step.PolicyStep:
        outputs, policy_state = self._actions_or_distributions(time_step, policy_state)
        return policy_step.PolicyStep(
            tf.nest.map_structure(_as_distribution, outputs), policy_state
        )


def _as_distribution(action_or_distribution: Any) -> Any:
    if not isinstance(action_or_distribution, tf.Tensor):
        return action_or_distribution
    from tfrl.policies.acting import deterministic

    return deterministic.DeterministicWithLogProb(loc=action_or_distribution)


def _check_output(output_spec: Any, action_spec: Any, network_name: str) -> None:
    from tfrl.distributions import utils as distribution_utils

    distribution_utils.assert_specs_are_compatible(
        output_spec,
        action_spec,
        f"actor_network {network_name!r}: its output does not match action_spec; build "
        "it with the environment's action spec",
    )


def _check_maskable(action_spec: Any) -> None:
    specs = tf.nest.flatten(action_spec)
    if len(specs) != 1 or not tensor_spec.is_discrete(specs[0]):
        raise NotImplementedError(
            "observation_and_action_constraint_splitter: ActorPolicy masks a single "
            f"discrete action spec only, got {action_spec}; leave out the splitter."
        )
