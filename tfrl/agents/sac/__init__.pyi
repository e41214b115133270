from . import crossq_agent as crossq_agent
from . import discrete_sac_agent as discrete_sac_agent
from . import droq_agent as droq_agent
from . import edac_agent as edac_agent
from . import sac_agent as sac_agent
from . import tanh_normal_projection_network as tanh_normal_projection_network
from . import tqc_agent as tqc_agent
from .crossq_agent import CrossQAgent as CrossQAgent
from .discrete_sac_agent import DiscreteSacAgent as DiscreteSacAgent
from .droq_agent import DroqAgent as DroqAgent
from .edac_agent import EdacAgent as EdacAgent
from .sac_agent import SacAgent as SacAgent
from .sac_agent import SacLossInfo as SacLossInfo
from .tanh_normal_projection_network import (
    TanhNormalProjectionNetwork as TanhNormalProjectionNetwork,
)
from .tanh_normal_projection_network import (
    std_clip_transform as std_clip_transform,
)
from .tqc_agent import TqcAgent as TqcAgent
