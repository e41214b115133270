"""Torsos for continuous control."""

from tfrl.networks.layers.continuous import (
    LayerNormAndResidualMLP as LayerNormAndResidualMLP,
)
from tfrl.networks.layers.continuous import LayerNormMLP as LayerNormMLP
from tfrl.networks.layers.continuous import (
    NearZeroInitializedLinear as NearZeroInitializedLinear,
)
