"""The policy of a Q network, which uses action values as logits.

`GreedyPolicy` and `EpsilonGreedyPolicy` take the argmax of the values directly. Only
`distribution` makes a TFP distribution, so greedy Q-learning never imports TFP.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from tfrl.networks import network
from tfrl.networks import utils as network_utils
from tfrl.policies import tf_policy, utils
from tfrl.policies.acting import traced_action, validation
from tfrl.specs import tensor_spec
from tfrl.trajectories import policy_step
from tfrl.trajectories import time_step as ts
from tfrl.typing import types


class QPolicy(tf_policy.TFPolicy):
    """Acts with a network that maps observations to one value per action.

    `action` samples with the values as logits. For other ways to act, wrap the policy
    in `GreedyPolicy`, `EpsilonGreedyPolicy` or `BoltzmannPolicy`.
    """

    # An argmax over the actions lies within their bounds.
    _greedy_action_needs_clip = False

    def __init__(
        self,
        time_step_spec: ts.TimeStep,
        action_spec: types.NestedTensorSpec,
        q_network: network.Network,
        emit_log_probability: bool = False,
        observation_and_action_constraint_splitter: types.Splitter | None = None,
        validate_action_spec_and_network: bool = True,
        name: str | None = None,
        *,
        seed: int | None = None,
        training: bool = False,
    ) -> None:
        """Creates the policy.

        Args:
          time_step_spec: A `TimeStep` of specs.
          action_spec: One bounded integer spec of shape `[]`.
          q_network: A network, or Keras layer or model, with output `[B, num_actions]`.
          emit_log_probability: Whether `PolicyStep.info` holds log-probabilities.
          observation_and_action_constraint_splitter: See `TFPolicy`. The network is
            given the first part only; the values of invalid actions become the dtype's
            minimum.
          validate_action_spec_and_network: Whether the spec and the shape of the
            network's output are checked.
          name: The module's name.
          seed: See `TFPolicy`.
          training: Whether the network is applied as in training: a network of
            `NoisyDense` layers then explores by their noise.

        Raises:
          ValueError: `action_spec` is not a single scalar with minimum 0, or the
            network's output or its `action_spec` does not fit it.
        """
        validation.check_time_step_spec(time_step_spec)
        action_spec = tensor_spec.from_spec(action_spec)
        flat_action_spec = tf.nest.flatten(action_spec)
        _check_network_action_spec(q_network, action_spec)
        if len(flat_action_spec) != 1:
            raise ValueError(_not_scalar(action_spec))
        if validate_action_spec_and_network:
            check_scalar_from_zero(flat_action_spec[0])
        q_network = network.as_network(q_network)
        output_spec = q_network.create_variables(
            utils.network_observation_spec(
                tensor_spec.from_spec(time_step_spec.observation),
                observation_and_action_constraint_splitter,
            )
        )
        if validate_action_spec_and_network:
            num_actions = int(flat_action_spec[0].maximum) + 1
            network_utils.check_single_floating_network_output(
                output_spec, (num_actions,), str(q_network)
            )
        super().__init__(
            time_step_spec,
            action_spec,
            policy_state_spec=q_network.state_spec,
            clip=False,
            emit_log_probability=emit_log_probability,
            observation_and_action_constraint_splitter=(
                observation_and_action_constraint_splitter
            ),
            name=name,
            seed=seed,
        )
        self._q_network = q_network
        self._training = training
        self._flat_action_spec = flat_action_spec[0]

    def _variables(self) -> Sequence[Any]:
        return self._q_network.variables

    def _is_pure_tensorflow(self) -> bool:
        return (
            type(self) is QPolicy
            and self._observation_and_action_constraint_splitter is None
            and traced_action.has_known_layers(self._q_network)
        )

    def _q_values(
        self, time_step: ts.TimeStep, policy_state: types.NestedTensor
    ) -> tuple[tf.Tensor, types.NestedTensor]:
        """Returns the masked values `[B, num_actions]` and the next state."""
        observation, mask = time_step.observation, None
        if self._observation_and_action_constraint_splitter is not None:
            observation, mask = self._observation_and_action_constraint_splitter(
                observation
            )
        output, policy_state = self._q_network(
            observation,
            step_type=time_step.step_type,
            network_state=policy_state,
            training=self._training,
        )
        q_values = self._values_of(output)
        if mask is not None:
            q_values = utils.mask_values(q_values, mask)
        return q_values, policy_state

    def _values_of(self, network_output: tf.Tensor) -> tf.Tensor:
        """Returns the values `[B, num_actions]` that the network's output encodes."""
        return network_output

    def _greedy_action(
        self, time_step: ts.TimeStep, policy_state: types.NestedTensor
    ) -> policy_step.PolicyStep:
        q_values, policy_state = self._q_values(time_step, policy_state)
        spec = self._flat_action_spec
        output_type = spec.dtype if spec.dtype in (tf.int32, tf.int64) else tf.int32
        action = tf.argmax(q_values, axis=-1, output_type=output_type)
        if (spec.minimum != 0).any():
            action += tf.cast(spec.minimum, output_type)
        if action.dtype != spec.dtype:
            action = tf.cast(action, spec.dtype)
        return policy_step.PolicyStep(
            tf.nest.pack_sequence_as(self._action_spec, [action]), policy_state
        )

    def _distribution(
        self, time_step: ts.TimeStep, policy_state: types.NestedTensor
    ) -> policy_step.PolicyStep:
        logits, policy_state = self._q_values(time_step, policy_state)
        return policy_step.PolicyStep(self._as_distribution(logits), policy_state)

    def _as_distribution(self, logits: tf.Tensor) -> Any:
        """Returns the categorical distribution, packed like the action spec."""
        from tfrl.distributions import shifted_categorical

        distribution = shifted_categorical.over(self._flat_action_spec, logits=logits)
        return tf.nest.pack_sequence_as(self._action_spec, [distribution])


def _check_network_action_spec(q_network: Any, action_spec: Any) -> None:
    network_action_spec = getattr(q_network, "action_spec", None)
    if network_action_spec is None:
        return
    if not action_spec.is_compatible_with(network_action_spec):
        raise ValueError(
            f"action_spec: got {action_spec}, expected one compatible with "
            f"q_network.action_spec, {network_action_spec}; build the network with the "
            "environment's action spec."
        )


def check_scalar_from_zero(spec: Any) -> None:
    """Raises ValueError unless `spec` is a bounded scalar with minimum 0."""
    check_scalar(spec)
    utils.check_zero_minimum(spec)


def check_scalar(spec: Any) -> None:
    """Raises ValueError unless `spec` is a bounded scalar."""
    if spec.shape.rank != 0 or not isinstance(spec, tensor_spec.BoundedTensorSpec):
        raise ValueError(_not_scalar(spec))


def _not_scalar(action_spec: Any) -> str:
    return (
        "action_spec: a QPolicy supports only scalar actions, expected one bounded "
        f"integer spec of shape (), got {action_spec}; use a discrete-action "
        "environment, or an agent for continuous actions."
    )
