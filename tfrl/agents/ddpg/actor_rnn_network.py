"""Re-exports `networks.ActorRnnNetwork` at TF-Agents' path."""

from tfrl.networks.actor_rnn_network import ActorRnnNetwork

__all__ = ["ActorRnnNetwork"]
