from . import agent as agent
from .agent import DistributionalMPO as DistributionalMPO
