from . import agent as agent
from . import dmpo_agent as dmpo_agent
from .agent import DistributionalMPO as DistributionalMPO
from .dmpo_agent import DmpoAgent as DmpoAgent
