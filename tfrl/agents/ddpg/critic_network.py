"""Re-exports `networks.CriticNetwork` at TF-Agents' path."""

from tfrl.networks.critic_network import CriticNetwork

__all__ = ["CriticNetwork"]
