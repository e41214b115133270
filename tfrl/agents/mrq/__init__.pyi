from . import mrq_agent as mrq_agent
from . import mrq_networks as mrq_networks
from .mrq_agent import MrqAgent as MrqAgent
from .mrq_agent import MrqInfo as MrqInfo
from .mrq_networks import MrqNetworks as MrqNetworks
from .mrq_networks import make_networks as make_networks
