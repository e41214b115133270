from . import dm_control_state as dm_control_state
from . import dm_env_wrapper as dm_env_wrapper
