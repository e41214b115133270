from . import iql_agent as iql_agent
from .iql_agent import IqlAgent as IqlAgent
