from . import discrete_sac_agent as discrete_sac_agent
from .discrete_sac_agent import DiscreteSacAgent as DiscreteSacAgent
