from . import d4pg_agent as d4pg_agent
from .d4pg_agent import D4pgAgent as D4pgAgent
from .d4pg_agent import D4pgInfo as D4pgInfo
