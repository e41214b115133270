from . import dqn_agent as dqn_agent
from .dqn_agent import DdqnAgent as DdqnAgent
from .dqn_agent import DqnAgent as DqnAgent
from .dqn_agent import DqnLossInfo as DqnLossInfo
