from . import losses as losses
from . import networks as networks
from . import savers as savers
from . import utils as utils
from . import variable_utils as variable_utils
