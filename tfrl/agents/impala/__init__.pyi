from . import impala_agent as impala_agent
from .impala_agent import ImpalaAgent as ImpalaAgent
from .impala_agent import ImpalaLossInfo as ImpalaLossInfo
from .impala_agent import split_network as split_network
