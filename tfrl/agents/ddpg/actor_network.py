"""Re-exports `networks.ActorNetwork` at TF-Agents' path."""

from tfrl.networks.actor_network import ActorNetwork

__all__ = ["ActorNetwork"]
