from . import agents as agents
from . import drivers as drivers
from . import environments as environments
from . import metrics as metrics
from . import multi_objective as multi_objective
from . import networks as networks
from . import policies as policies
from . import specs as specs
