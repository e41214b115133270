"""The inputs and outputs of networks that predict rewards."""

from __future__ import annotations

from typing import Any

from tfrl.bandits.networks import heteroscedastic_q_network
from tfrl.specs import bandit_spec_utils


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
