from . import lockstep_roles as lockstep_roles
from . import rounds as rounds
