from . import agent as agent
from .agent import MPO as MPO
