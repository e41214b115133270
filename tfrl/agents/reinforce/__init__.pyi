from . import reinforce_agent as reinforce_agent
from .reinforce_agent import ReinforceAgent as ReinforceAgent
from .reinforce_agent import ReinforceAgentLossInfo as ReinforceAgentLossInfo
