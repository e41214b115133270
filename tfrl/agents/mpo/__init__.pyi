from . import dmpo_agent as dmpo_agent
from . import mpo_agent as mpo_agent
from . import normalized_actions as normalized_actions
from .dmpo_agent import DmpoAgent as DmpoAgent
from .mpo_agent import MpoAgent as MpoAgent
from .mpo_agent import MpoLossInfo as MpoLossInfo
