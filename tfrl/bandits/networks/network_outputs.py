"""Networks that predict rewards: their base class, inputs and outputs."""

from __future__ import annotations

import abc
from typing import Any

from tfrl.bandits.networks import heteroscedastic_q_network
from tfrl.networks import network
from tfrl.policies import utils as policy_utils
from tfrl.policies.acting import validation
from tfrl.specs import bandit_spec_utils
from tfrl.trajectories import time_step as ts
from tfrl.typing import types


class RewardNetwork(network.Network):
    """Maps observations to rewards, which a subclass computes in `_rewards`."""

    @abc.abstractmethod
    def _rewards(self, observation: Any, training: bool) -> Any:
        """Returns the rewards of all arms, for each row."""

    def call(
        self,
        observation: Any,
        step_type: Any = None,
        network_state: Any = (),
        training: bool = False,
    ) -> tuple[Any, Any]:
        """Returns the rewards of all arms, and the network state as it was."""
        del step_type
        return self._rewards(observation, training), network_state


def network_input(observation: Any) -> Any:
    """Returns an observation, or its specs, without the number of arms."""
    if not isinstance(observation, dict):
        return observation
    key = bandit_spec_utils.NUM_ACTIONS_FEATURE_KEY
    return {name: each for name, each in observation.items() if name != key}


def mean_of(output: Any) -> Any:
    """Returns the predicted rewards in a network's output, or in its specs."""
    if isinstance(output, heteroscedastic_q_network.QBanditNetworkResult):
        return output.q_value_logits
    return output


def built(
    layers: types.Network | types.Layer,
    time_step_spec: ts.TimeStep,
    splitter: types.Splitter | None = None,
) -> tuple[network.Network, Any]:
    """Returns a network with its variables, and the specs of its output.

    Args:
      layers: A network, or a Keras layer or model.
      time_step_spec: A `TimeStep` of specs.
      splitter: Splits masks off the observations; None without.
    """
    validation.check_time_step_spec(time_step_spec)
    made = network.as_network(layers)
    spec = policy_utils.network_observation_spec(time_step_spec.observation, splitter)
    return made, made.create_variables(network_input(spec))


def rewards_of(made: Any, observation: Any, training: bool = False) -> Any:
    """Returns the rewards `[B, A]` that a network predicts for observations."""
    output, _ = made(network_input(observation), training=training)
    return mean_of(output)
