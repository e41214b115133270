"""Re-exports `agents.on_policy.PPOPolicy` at TF-Agents' path."""

from tfrl.agents.on_policy.ppo_policy import PPOPolicy

__all__ = ["PPOPolicy"]
