from . import agent as agent
from .agent import D4PG as D4PG
