from . import rebrac_agent as rebrac_agent
from . import td3_agent as td3_agent
from . import td3_bc_agent as td3_bc_agent
from .rebrac_agent import RebracAgent as RebracAgent
from .td3_agent import Td3Agent as Td3Agent
from .td3_agent import Td3Info as Td3Info
from .td3_bc_agent import Td3BcAgent as Td3BcAgent
