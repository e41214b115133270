"""LinUCB: upper confidence bounds of linear models."""

from __future__ import annotations

from typing import Any, Unpack

from tfrl.bandits.agents import linear_bandit_agent
from tfrl.specs import tensor_spec
from tfrl.trajectories import time_step as ts


class LinearUCBAgent(linear_bandit_agent.LinearBanditAgent):
    """LinUCB: the arm with the largest upper confidence bound (Li et al., 2010)."""

    def __init__(
        self,
        time_step_spec: ts.TimeStep,
        action_spec: tensor_spec.BoundedTensorSpec,
        *args: Any,
        **settings: Unpack[linear_bandit_agent.LinearBanditSettings],
    ) -> None:
        """Makes the agent; see `LinearBanditAgent` for the other arguments."""
        policy = linear_bandit_agent.ExplorationPolicy.linear_ucb_policy
        super().__init__(policy, time_step_spec, action_spec, *args, **settings)
