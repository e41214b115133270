"""TD3 with behavioural cloning (TD3+BC), for recorded experience.

It is TD3 (see `agents.td3.td3_agent`), whose actor mu minimises, for each recorded pair
(s, a),

    |mu(s) - a|^2 - alpha * Q_1(s, mu(s)) / mean |Q_1(s, mu(s))|

where |.|^2 is the mean over the dimensions of actions scaled to [-1, 1], and the
denominator is the batch's mean, without a gradient. Fujimoto and Gu, "A minimalist
approach to offline reinforcement learning" (2021, arXiv:2106.06860), equations 4 and 5,
with the denominator of the authors' code: the paper's has the recorded actions.
"""

from __future__ import annotations

from typing import Any, Unpack

import tensorflow as tf

from tfrl import losses
from tfrl.agents import critics, updates
from tfrl.agents.td3 import td3_agent
from tfrl.agents.td3_bc import distances
from tfrl.trajectories import time_step as ts
from tfrl.typing import types
from tfrl.utils import actions as actions_lib
from tfrl.utils import number_checks


class Td3BcAgent(td3_agent.Td3Agent):
    """A TD3+BC agent."""

    _takes_bins = False

    def __init__(
        self,
        time_step_spec: ts.TimeStep,
        action_spec: types.NestedTensorSpec,
        actor_network: types.Network | types.Layer,
        critic_network: types.Network | types.Layer,
        actor_optimizer: types.Optimizer | None,
        critic_optimizer: types.Optimizer | None,
        *,
        alpha: float = 2.5,
        **settings: Unpack[td3_agent.Td3Settings],
    ) -> None:
        """Builds the second critic, the target networks and the policies.

        `Td3Agent`, `TdOptions` and `AgentOptions` explain the arguments that are not
        listed here.

        Args:
          alpha: The weight of the values, relative to the distance from the recorded
            actions; 0 clones them.
          **settings: Further arguments of `Td3Agent`, with its defaults.

        Raises:
          ValueError: `alpha` is negative, or an argument of `Td3Agent` is wrong.
          NotImplementedError: N-step updates with a recurrent network.
        """
        number_checks.check_number("alpha", alpha, 0.0, remedy="2.5 is usual")
        super().__init__(
            time_step_spec,
            action_spec,
            actor_network,
            critic_network,
            actor_optimizer,
            critic_optimizer,
            **settings,
        )
        self._alpha = alpha

    def _actor_loss(self, batch: updates.Batch) -> tuple[tf.Tensor, dict[str, Any]]:
        """Returns the mean of `|mu(s) - a|^2 - alpha Q_1(s, mu(s)) / mean |Q_1|`."""
        time_step = batch.data.time_step
        actions = critics.outputs(self._actor_network, time_step, batch.training)
        values = self._q_values(time_step, actions)
        distance = distances.squared(self.action_spec, actions, batch.data.action)
        loss = losses.cloned_policy_gradient(
            values,
            distance / actions_lib.num_components(self.action_spec),
            distances.mean_size(values, critics.counted(batch)),
            self._alpha,
        )
        return critics.mean(loss, batch, self._actor_network), {}
