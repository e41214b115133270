from . import cql_sac_agent as cql_sac_agent
from .cql_sac_agent import CqlSacAgent as CqlSacAgent
