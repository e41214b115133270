from . import dreamer_agent as dreamer_agent
from . import dreamer_networks as dreamer_networks
from . import rssm as rssm
from .dreamer_agent import DreamerAgent as DreamerAgent
from .dreamer_agent import DreamerInfo as DreamerInfo
from .rssm import SIZES as SIZES
from .rssm import Sizes as Sizes
