"""Thompson's sampling with linear models, at TF-Agents' path."""

from __future__ import annotations

from typing import Any

from tfrl.bandits.policies import linear_bandit_policy
from tfrl.specs import tensor_spec
from tfrl.trajectories import time_step as ts


class LinearThompsonSamplingPolicy(linear_bandit_policy.LinearBanditPolicy):
    """A `LinearBanditPolicy` with the sampling strategy."""

    def __init__(
        self,
        action_spec: tensor_spec.BoundedTensorSpec,
        cov_matrix: Any,
        data_vector: Any,
        num_samples: Any,
        time_step_spec: ts.TimeStep,
        *args: Any,
        **kwargs: Any,
    ) -> None:
        """Creates the policy; see `LinearBanditPolicy`."""
        super().__init__(
            action_spec,
            cov_matrix,
            data_vector,
            num_samples,
            time_step_spec,
            linear_bandit_policy.ExplorationStrategy.sampling,
            *args,
            **kwargs,
        )
