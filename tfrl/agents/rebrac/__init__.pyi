from . import rebrac_agent as rebrac_agent
from .rebrac_agent import RebracAgent as RebracAgent
