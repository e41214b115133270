"""The names of parts of observations that training treats in their own way."""

from __future__ import annotations

# What networks see, where an environment's observation is no dict of its own.
OBSERVATION = "observation"
# Which actions are legal, 0 or 1 for each.
MASK = "action_mask"
# What critics see instead of the other parts.
CRITIC = "critic_observation"
# The number of an agent among several, as a one-hot vector.
NUMBER = "agent"
