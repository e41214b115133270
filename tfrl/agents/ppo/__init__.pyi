from . import ppo_agent as ppo_agent
from . import ppo_clip_agent as ppo_clip_agent
from . import ppo_policy as ppo_policy
from . import ppo_utils as ppo_utils
from .ppo_agent import PPOAgent as PPOAgent
from .ppo_agent import PPOLossInfo as PPOLossInfo
from .ppo_clip_agent import PPOClipAgent as PPOClipAgent
from .ppo_policy import PPOPolicy as PPOPolicy
