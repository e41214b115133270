from . import a2c_agent as a2c_agent
from .a2c_agent import A2CAgent as A2CAgent
from .a2c_agent import A2CLossInfo as A2CLossInfo
