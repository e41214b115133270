from . import r2d2_agent as r2d2_agent
from .r2d2_agent import R2d2Agent as R2d2Agent
