from . import sac_agent as sac_agent
from . import tanh_normal_projection_network as tanh_normal_projection_network
from .sac_agent import SacAgent as SacAgent
from .sac_agent import SacLossInfo as SacLossInfo
from .tanh_normal_projection_network import (
    TanhNormalProjectionNetwork as TanhNormalProjectionNetwork,
)
from .tanh_normal_projection_network import (
    std_clip_transform as std_clip_transform,
)
