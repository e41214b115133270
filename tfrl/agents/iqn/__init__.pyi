from . import iqn_agent as iqn_agent
from .iqn_agent import IqnAgent as IqnAgent
