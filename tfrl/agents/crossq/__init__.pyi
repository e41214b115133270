from . import crossq_agent as crossq_agent
from .crossq_agent import CrossQAgent as CrossQAgent
