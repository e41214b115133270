from . import tanh_normal_projection_network as tanh_normal_projection_network
from .tanh_normal_projection_network import (
    TanhNormalProjectionNetwork as TanhNormalProjectionNetwork,
)
