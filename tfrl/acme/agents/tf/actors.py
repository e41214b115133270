"""Actors for an `EnvironmentLoop`: a network or any policy, with an adder."""

from tfrl.agents.actors import FeedForwardActor as FeedForwardActor
from tfrl.agents.actors import PolicyActor as PolicyActor
