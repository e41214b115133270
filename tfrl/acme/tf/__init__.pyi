from . import losses as losses
from . import networks as networks
from . import savers as savers
from . import utils as utils
