from . import fixed_policy_agent as fixed_policy_agent
from . import random_agent as random_agent
from .fixed_policy_agent import FixedPolicyAgent as FixedPolicyAgent
from .random_agent import RandomAgent as RandomAgent
