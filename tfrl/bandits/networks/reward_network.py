"""The base class of networks without memory that predict rewards."""

from __future__ import annotations

import abc
from typing import Any

from tfrl.networks import network


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
