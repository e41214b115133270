"""Constraints: which arms are feasible, by networks that learn it.

>>> import tensorflow as tf
>>> from tfrl import networks
>>> from tfrl.bandits import environments
>>> from tfrl.bandits.policies import constraints
>>> bandit = environments.load("WheelBandit-v0", batch_size=2, seed=0)
>>> specs = bandit.time_step_spec(), bandit.action_spec()
>>> network = networks.QNetwork(specs[0].observation, specs[1])
>>> cheap = constraints.AbsoluteConstraint(
...     *specs, network, comparator_fn=tf.less, absolute_value=3.0
... )
>>> cheap(bandit.reset().observation).shape
TensorShape([2, 5])
"""

from __future__ import annotations

import abc
import functools
from collections.abc import Callable, Iterable
from typing import Any

import tensorflow as tf

from tfrl.bandits.networks import network_outputs
from tfrl.bandits.policies import bandit_policy, loss_utils
from tfrl.policies import utils as policy_utils
from tfrl.specs import bandit_spec_utils
from tfrl.trajectories import time_step as ts
from tfrl.typing import types
from tfrl.utils import common
from tfrl.utils.random_numbers import seeds


class BaseConstraint(tf.Module, abc.ABC):
    """Maps observations to the probabilities `[B, A]` that arms are feasible."""

    def __init__(
        self, time_step_spec: ts.TimeStep, action_spec: Any, name: str | None = None
    ) -> None:
        """Stores the specs.

        Args:
          time_step_spec: A `TimeStep` of specs; its observation has no mask.
          action_spec: One bounded integer spec of shape `[]`, from 0.
          name: The module's name.

        Raises:
          ValueError: `time_step_spec` is not a `TimeStep`.
        """
        super().__init__(name=name)
        if not isinstance(time_step_spec, ts.TimeStep):
            raise ValueError(
                f"time_step_spec: got a {type(time_step_spec).__name__}, expected a "
                "TimeStep of specs; use tfrl.trajectories.time_step.time_step_spec."
            )
        self._time_step_spec = time_step_spec
        self._action_spec = action_spec
        self._num_actions = policy_utils.get_num_actions_from_tensor_spec(action_spec)

    @property
    def trained_networks(self) -> list[Any]:
        """The networks that learn by `errors`."""
        return []

    @abc.abstractmethod
    def __call__(self, observation: Any, actions: Any = None) -> tf.Tensor:
        """Returns the probabilities that arms are feasible, float32 `[B, A]`."""

    def errors(
        self,
        observations: Any,
        actions: tf.Tensor,
        targets: tf.Tensor,
        training: bool = False,
    ) -> tf.Tensor:
        """Returns the loss of each row, `[n]`; 0 if there is nothing to learn."""
        del observations, actions, training
        return tf.zeros_like(tf.cast(targets, tf.float32))

    def compute_loss(
        self,
        observations: Any,
        actions: tf.Tensor,
        rewards: tf.Tensor,
        weights: Any = None,
        training: bool = False,
    ) -> tf.Tensor:
        """Returns the mean of the weighted `errors`."""
        errors = self.errors(observations, actions, rewards, training)
        return tf.reduce_mean(errors * (1.0 if weights is None else weights))


class NeuralConstraint(BaseConstraint):
    """Base of constraints whose network learns a number of each arm."""

    def __init__(
        self,
        time_step_spec: ts.TimeStep,
        action_spec: Any,
        constraint_network: types.Network | types.Layer | None,
        error_loss_fn: types.LossFn = common.element_wise_squared_loss,
        name: str | None = "NeuralConstraint",
    ) -> None:
        """Makes the network's variables.

        Args:
          time_step_spec: See `BaseConstraint`.
          action_spec: See `BaseConstraint`.
          constraint_network: Maps observations to `[B, A]`; None to set it later.
          error_loss_fn: The loss of targets and predictions, for each element.
          name: The module's name.
        """
        super().__init__(time_step_spec, action_spec, name)
        self._error_loss_fn = loss_utils.element_wise(error_loss_fn)
        self.constraint_network = constraint_network

    @property
    def constraint_network(self) -> Any:
        """The network, or None."""
        return self._constraint_network

    @constraint_network.setter
    def constraint_network(self, constraint_network: Any) -> None:
        if constraint_network is not None:
            constraint_network, _ = network_outputs.built(
                constraint_network, self._time_step_spec
            )
        self._constraint_network = constraint_network

    def initialize(self) -> None:
        """Does nothing: a variable has its value when it is made."""

    @property
    def observation_spec(self) -> Any:
        """The specs of the observation."""
        return self._time_step_spec.observation

    @observation_spec.setter
    def observation_spec(self, observation_spec: Any) -> None:
        self._time_step_spec = self._time_step_spec._replace(
            observation=observation_spec
        )

    @property
    def trained_networks(self) -> list[Any]:
        """The network, if there is one."""
        return [] if self._constraint_network is None else [self._constraint_network]

    def _predicted(self, observation: Any, training: bool = False) -> tf.Tensor:
        """Returns the network's numbers `[B, A]`."""
        return network_outputs.rewards_of(
            self._constraint_network, observation, training
        )

    def errors(
        self,
        observations: Any,
        actions: tf.Tensor,
        targets: tf.Tensor,
        training: bool = False,
    ) -> tf.Tensor:
        """Returns the error of the chosen arms' numbers, `[n]`."""
        predicted = self._predicted(observations, training)
        chosen = tf.gather(predicted, tf.cast(actions, tf.int32), batch_dims=1)
        return self._error_loss_fn(tf.cast(targets, tf.float32), chosen)

    def __call__(self, observation: Any, actions: Any = None) -> tf.Tensor:
        """Returns ones: all arms are feasible."""
        del actions
        first = tf.nest.flatten(observation)[0]
        return tf.ones([tf.shape(first)[0], self._num_actions])


class AbsoluteConstraint(NeuralConstraint):
    """An arm is feasible if its predicted number is above a fixed one."""

    def __init__(
        self,
        time_step_spec: ts.TimeStep,
        action_spec: Any,
        constraint_network: types.Network | types.Layer | None,
        error_loss_fn: types.LossFn = common.element_wise_squared_loss,
        comparator_fn: Callable[[Any, Any], tf.Tensor] = tf.greater,
        absolute_value: float = 0.0,
        name: str | None = "AbsoluteConstraint",
    ) -> None:
        """Stores the comparison; see `NeuralConstraint` for other arguments.

        Args:
          time_step_spec: See `BaseConstraint`.
          action_spec: See `BaseConstraint`.
          constraint_network: See `NeuralConstraint`.
          error_loss_fn: See `NeuralConstraint`.
          comparator_fn: Compares predictions with the number; `tf.less` demands that
            they are below it.
          absolute_value: The number.
          name: The module's name.
        """
        super().__init__(
            time_step_spec, action_spec, constraint_network, error_loss_fn, name
        )
        self._comparator_fn = comparator_fn
        self._value = absolute_value

    def __call__(self, observation: Any, actions: Any = None) -> tf.Tensor:
        """Returns 1 for arms that fulfil the comparison, and 0 for the others."""
        del actions
        fulfilled = self._comparator_fn(self._predicted(observation), self._value)
        return tf.cast(fulfilled, tf.float32)


class QuantileConstraint(AbsoluteConstraint):
    """An arm is feasible if a quantile of its numbers is above a fixed one."""

    def __init__(
        self,
        time_step_spec: ts.TimeStep,
        action_spec: Any,
        constraint_network: types.Network | types.Layer | None,
        quantile: float = 0.5,
        comparator_fn: Callable[[Any, Any], tf.Tensor] = tf.greater,
        quantile_value: float = 0.0,
        name: str | None = "QuantileConstraint",
    ) -> None:
        """Stores the comparison.

        Args:
          time_step_spec: See `BaseConstraint`.
          action_spec: See `BaseConstraint`.
          constraint_network: Learns the quantiles `[B, A]`.
          quantile: Which quantile, from 0 to 1.
          comparator_fn: See `AbsoluteConstraint`.
          quantile_value: The number.
          name: The module's name.
        """
        super().__init__(
            time_step_spec,
            action_spec,
            constraint_network,
            functools.partial(loss_utils.pinball_loss, quantile=quantile),
            comparator_fn,
            quantile_value,
            name,
        )


class RelativeConstraint(NeuralConstraint):
    """An arm is feasible if its predicted number is above that of a baseline arm."""

    def __init__(
        self,
        time_step_spec: ts.TimeStep,
        action_spec: Any,
        constraint_network: types.Network | types.Layer | None,
        error_loss_fn: types.LossFn = common.element_wise_squared_loss,
        comparator_fn: Callable[[Any, Any], tf.Tensor] = tf.greater,
        margin: float = 0.0,
        baseline_action_fn: Callable[[Any], tf.Tensor] | None = None,
        name: str | None = "RelativeConstraint",
    ) -> None:
        """Stores the comparison; see `NeuralConstraint` for other arguments.

        Args:
          time_step_spec: See `BaseConstraint`.
          action_spec: See `BaseConstraint`.
          constraint_network: See `NeuralConstraint`.
          error_loss_fn: See `NeuralConstraint`.
          comparator_fn: Compares predictions with `1 - margin` times the baseline's.
          margin: The margin.
          baseline_action_fn: Returns the baseline's arms `[B]` for observations; None
            for the first arm.
          name: The module's name.
        """
        super().__init__(
            time_step_spec, action_spec, constraint_network, error_loss_fn, name
        )
        self._comparator_fn = comparator_fn
        self._margin = margin
        self._baseline_action_fn = baseline_action_fn

    def __call__(self, observation: Any, actions: Any = None) -> tf.Tensor:
        """Returns 1 for arms that fulfil the comparison, and 0 for the others."""
        del actions
        predicted = self._predicted(observation)
        if self._baseline_action_fn is None:
            baseline = predicted[:, :1]
        else:
            arms = tf.cast(self._baseline_action_fn(observation), tf.int32)
            baseline = tf.gather(predicted, arms[:, tf.newaxis], batch_dims=1)
        fulfilled = self._comparator_fn(predicted, (1 - self._margin) * baseline)
        return tf.cast(fulfilled, tf.float32)


class RelativeQuantileConstraint(RelativeConstraint):
    """An arm is feasible if its quantile is above that of a baseline arm."""

    def __init__(
        self,
        time_step_spec: ts.TimeStep,
        action_spec: Any,
        constraint_network: types.Network | types.Layer | None,
        quantile: float = 0.5,
        comparator_fn: Callable[[Any, Any], tf.Tensor] = tf.greater,
        baseline_action_fn: Callable[[Any], tf.Tensor] | None = None,
        name: str | None = "RelativeQuantileConstraint",
    ) -> None:
        """Stores the comparison; see `QuantileConstraint` and `RelativeConstraint`."""
        super().__init__(
            time_step_spec,
            action_spec,
            constraint_network,
            functools.partial(loss_utils.pinball_loss, quantile=quantile),
            comparator_fn,
            baseline_action_fn=baseline_action_fn,
            name=name,
        )


class InputNetworkConstraint(BaseConstraint):
    """Base of constraints by a network that is trained already.

    A subclass writes `__call__` with `self.network`.
    """

    def __init__(
        self,
        time_step_spec: ts.TimeStep,
        action_spec: Any,
        input_network: types.Network | None = None,
        name: str | None = "InputNetworkConstraint",
    ) -> None:
        """Stores the network; None to set it later."""
        super().__init__(time_step_spec, action_spec, name)
        self.network = input_network


def compute_feasibility_probability(
    observation: Any,
    constraints: Iterable[BaseConstraint],
    batch_size: Any,
    num_actions: int,
    action_mask: tf.Tensor | None = None,
) -> tf.Tensor:
    """Returns the product of the constraints' probabilities, float32 `[B, A]`.

    Args:
      observation: The observations, without masks.
      constraints: The constraints, taken as independent.
      batch_size: B.
      num_actions: A.
      action_mask: `[B, A]`, a further factor; None for 1.
    """
    if action_mask is None:
        action_mask = tf.ones([batch_size, num_actions])
    probability = tf.cast(action_mask, tf.float32)
    for constraint in constraints:
        probability *= constraint(observation)
    return probability


def feasible_arms(
    observation: Any,
    constraints: Iterable[BaseConstraint],
    allowed: tf.Tensor,
    seed: tf.Tensor | None,
) -> tf.Tensor:
    """Returns which of the allowed arms are feasible, bool `[B, A]`.

    An arm is feasible with the probability that the constraints give. In a row without
    a feasible arm, all allowed arms stay allowed.

    Args:
      observation: The observations, without masks.
      constraints: The constraints.
      allowed: The allowed arms, bool `[B, A]`.
      seed: A stateless seed; with None arms are feasible from a probability of 0.5.
    """
    constraints = tuple(constraints)
    if not constraints:
        return allowed
    probability = compute_feasibility_probability(
        observation, constraints, tf.shape(allowed)[0], allowed.shape[1], allowed
    )
    if seed is None:
        feasible = probability >= 0.5
    else:
        # The choice of an arm takes the first two seeds.
        own = seeds.split_seed(seed, 3)[2]
        feasible = seeds.uniform(own, tf.shape(probability)) < probability
    return tf.where(tf.reduce_any(feasible, axis=1, keepdims=True), feasible, allowed)


def construct_mask_from_multiple_sources(
    observation: Any,
    observation_and_action_constraint_splitter: types.Splitter | None,
    constraints: Iterable[BaseConstraint],
    max_num_actions: int,
    *,
    seed: int | tf.Tensor | None = None,
) -> tf.Tensor | None:
    """Returns the arms that masks, numbers of arms and constraints all allow.

    Args:
      observation: The observations.
      observation_and_action_constraint_splitter: Splits off the masks; None without.
      constraints: See `feasible_arms`.
      max_num_actions: The number of arms, A.
      seed: See `feasible_arms`.

    Returns:
      A mask, int32 `[B, A]`; None if there is nothing that could forbid an arm.
    """
    constraints, mask = tuple(constraints), None
    if observation_and_action_constraint_splitter is not None:
        observation, mask = observation_and_action_constraint_splitter(observation)
    has_number = (
        isinstance(observation, dict)
        and bandit_spec_utils.NUM_ACTIONS_FEATURE_KEY in observation
    )
    if mask is None and not constraints and not has_number:
        return None
    allowed = bandit_policy.allowed_arms(observation, mask, max_num_actions)
    own = None if seed is None else seeds.as_seed(seed)
    return tf.cast(feasible_arms(observation, constraints, allowed, own), tf.int32)
