from . import impala_agent as impala_agent
from . import impala_networks as impala_networks
from .impala_agent import ImpalaAgent as ImpalaAgent
from .impala_agent import ImpalaLossInfo as ImpalaLossInfo
from .impala_networks import split_network as split_network
