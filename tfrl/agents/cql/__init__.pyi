from . import cql_dqn_agent as cql_dqn_agent
from . import cql_sac_agent as cql_sac_agent
from .cql_dqn_agent import CqlDqnAgent as CqlDqnAgent
from .cql_sac_agent import CqlSacAgent as CqlSacAgent
