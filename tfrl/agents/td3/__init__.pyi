from . import td3_agent as td3_agent
from .td3_agent import Td3Agent as Td3Agent
from .td3_agent import Td3Info as Td3Info
