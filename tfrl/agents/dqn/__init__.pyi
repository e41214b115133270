from . import dqn_agent as dqn_agent
from . import munchausen as munchausen
from .dqn_agent import D3qnAgent as D3qnAgent
from .dqn_agent import DdqnAgent as DdqnAgent
from .dqn_agent import DqnAgent as DqnAgent
from .dqn_agent import DqnLossInfo as DqnLossInfo
from .dqn_agent import DqnSettings as DqnSettings
from .munchausen import Munchausen as Munchausen
