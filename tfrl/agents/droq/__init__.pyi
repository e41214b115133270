from . import droq_agent as droq_agent
from .droq_agent import DroqAgent as DroqAgent
