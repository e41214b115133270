from . import edac_agent as edac_agent
from .edac_agent import EdacAgent as EdacAgent
