"""An actor and a learner in one."""

from tfrl.agents.agent import Agent as Agent
