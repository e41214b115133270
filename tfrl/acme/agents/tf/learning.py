"""The learner of an agent with an actor of its own."""

from tfrl.agents.learning import Learner as Learner
