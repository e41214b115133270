from . import actor_distribution_network as actor_distribution_network
from . import categorical_projection_network as categorical_projection_network
from . import checks as checks
from . import encoding_network as encoding_network
from . import layer_utils as layer_utils
from . import network as network
from . import normal_projection_network as normal_projection_network
from . import q_network as q_network
from . import seeding as seeding
from . import sequential as sequential
from . import signatures as signatures
from . import utils as utils
from . import value_network as value_network
from .actor_distribution_network import (
    ActorDistributionNetwork as ActorDistributionNetwork,
)
from .categorical_projection_network import (
    CategoricalProjectionNetwork as CategoricalProjectionNetwork,
)
from .encoding_network import EncodingNetwork as EncodingNetwork
from .network import DistributionNetwork as DistributionNetwork
from .network import Network as Network
from .network import create_variables as create_variables
from .normal_projection_network import (
    NormalProjectionNetwork as NormalProjectionNetwork,
)
from .q_network import QNetwork as QNetwork
from .sequential import Sequential as Sequential
from .value_network import ValueNetwork as ValueNetwork
