"""Re-exports functions of `agents.on_policy` at TF-Agents' path."""

from tfrl.agents.on_policy.distribution_params import (
    distribution_from_spec,
    get_distribution_params,
    get_distribution_params_spec,
    nested_kl_divergence,
)
from tfrl.agents.on_policy.training_data import make_trajectory_mask

__all__ = [
    "distribution_from_spec",
    "get_distribution_params",
    "get_distribution_params_spec",
    "make_trajectory_mask",
    "nested_kl_divergence",
]
