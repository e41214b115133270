from . import distances as distances
from . import td3_bc_agent as td3_bc_agent
from .td3_bc_agent import Td3BcAgent as Td3BcAgent
