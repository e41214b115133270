from . import actor_network as actor_network
from . import actor_rnn_network as actor_rnn_network
from . import critic_network as critic_network
from . import critic_rnn_network as critic_rnn_network
from . import ddpg_agent as ddpg_agent
from .ddpg_agent import DdpgAgent as DdpgAgent
from .ddpg_agent import DdpgInfo as DdpgInfo
