from . import dmpo_agent as dmpo_agent
from .dmpo_agent import DmpoAgent as DmpoAgent
