from . import noise_policy as noise_policy
from . import wrapper_policy as wrapper_policy
