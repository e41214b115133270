from . import tqc_agent as tqc_agent
from .tqc_agent import TqcAgent as TqcAgent
