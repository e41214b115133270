from . import pqn_agent as pqn_agent
from .pqn_agent import PqnAgent as PqnAgent
from .pqn_agent import PqnLossInfo as PqnLossInfo
