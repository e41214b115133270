"""The policy of a categorical Q network (C51): acts by the expected values."""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np
import tensorflow as tf

from tfrl.networks import network
from tfrl.networks import utils as network_utils
from tfrl.policies import q_policy, utils
from tfrl.specs import tensor_spec
from tfrl.trajectories import policy_step
from tfrl.trajectories import time_step as ts
from tfrl.typing import types
from tfrl.utils import common, number_checks
from tfrl.utils.optimization import schedules


class CategoricalQPolicy(q_policy.QPolicy):
    """Acts with a network that returns a distribution over values for each action.

    The value of an action is the expectation over the atoms of the support
    `linspace(min_q_value, max_q_value, num_atoms)` (Bellemare et al. 2017,
    arXiv:1707.06887). `action` samples with the values, divided by the temperature, as
    logits; wrap the policy in `GreedyPolicy` or `EpsilonGreedyPolicy` to act greedily.
    """

    def __init__(
        self,
        time_step_spec: ts.TimeStep,
        action_spec: types.NestedTensorSpec,
        q_network: network.Network,
        min_q_value: float,
        max_q_value: float,
        observation_and_action_constraint_splitter: types.Splitter | None = None,
        temperature: types.FloatOrSchedule = 1.0,
        name: str | None = None,
        *,
        emit_log_probability: bool = False,
        step: tf.Variable | None = None,
        seed: int | None = None,
    ) -> None:
        """Creates the policy.

        Args:
          time_step_spec: A `TimeStep` of specs.
          action_spec: One bounded integer spec of shape `[]` with minimum 0.
          q_network: A network with the property `num_atoms` and logits `[B,
            num_actions, num_atoms]` as output, such as a `CategoricalQNetwork`.
          min_q_value: The lowest value of the support.
          max_q_value: The highest value of the support.
          observation_and_action_constraint_splitter: See `TFPolicy`. The network is
            given the first part only; the values of invalid actions become the dtype's
            minimum.
          temperature: A positive number, a scalar tensor or variable, a callable that
            returns one of these, or a Keras schedule of `step`; near 0 the action is
            the greedy one.
          name: The module's name.
          step: The variable that a schedule given as `temperature` follows, such as an
            agent's `train_step_counter`.
          emit_log_probability: See `TFPolicy`.
          seed: See `TFPolicy`.

        Raises:
          TypeError: `action_spec` is not a `BoundedTensorSpec`.
          ValueError: The actions do not start from 0, the network has no `num_atoms` or
            does not fit, the support is empty, the temperature is not positive, or a
            schedule has no `step`.
        """
        action_spec = tensor_spec.from_spec(action_spec)
        num_actions = _num_actions(action_spec)
        num_atoms = _num_atoms(q_network)
        _check_support(min_q_value, max_q_value)
        number_checks.check_number(
            "temperature",
            temperature,
            0,
            excludes_low=True,
            remedy="use GreedyPolicy for 0",
        )
        super().__init__(
            time_step_spec,
            action_spec,
            q_network,
            emit_log_probability=emit_log_probability,
            observation_and_action_constraint_splitter=(
                observation_and_action_constraint_splitter
            ),
            validate_action_spec_and_network=False,
            name=name,
            seed=seed,
        )
        network_utils.check_single_floating_network_output(
            self._q_network.create_variables(), (num_actions, num_atoms), str(q_network)
        )
        self._support = np.linspace(min_q_value, max_q_value, num_atoms, dtype="f4")
        self._temperature = schedules.follow("temperature", temperature, step)

    def _values_of(self, network_output: tf.Tensor) -> tf.Tensor:
        support = tf.constant(self._support, network_output.dtype)
        return common.convert_q_logits_to_values(network_output, support)

    # Dividing the values by a positive temperature does not change the best action.
    _greedy_action = q_policy.QPolicy._greedy_action

    def _distribution(
        self, time_step: ts.TimeStep, policy_state: types.NestedTensor
    ) -> policy_step.PolicyStep:
        values, policy_state = self._q_values(time_step, policy_state)
        temperature = schedules.current_value(self._temperature)
        logits = utils.divide_logits(values, temperature)
        return policy_step.PolicyStep(self._as_distribution(logits), policy_state)


def _num_actions(action_spec: Any) -> int:
    if not isinstance(action_spec, tensor_spec.BoundedTensorSpec):
        raise TypeError(
            "action_spec: expected one BoundedTensorSpec, got "
            f"{type(action_spec).__name__}; a CategoricalQPolicy takes a single "
            "discrete action."
        )
    q_policy.check_scalar_from_zero(action_spec)
    return int(action_spec.maximum) + 1


def _num_atoms(q_network: Any) -> int:
    num_atoms = getattr(q_network, "num_atoms", None)
    if num_atoms is None:
        raise ValueError(
            f"q_network: {type(q_network).__name__} has no property num_atoms, "
            "expected a network of value distributions; use a CategoricalQNetwork."
        )
    return int(num_atoms)


def _check_support(min_q_value: Any, max_q_value: Any) -> None:
    both_known = isinstance(min_q_value, numbers.Real) and isinstance(
        max_q_value, numbers.Real
    )
    if both_known and not float(min_q_value) < float(max_q_value):
        raise ValueError(
            f"min_q_value, max_q_value: got {min_q_value} and {max_q_value}, expected "
            "the first below the second; give the least and the greatest return."
        )
