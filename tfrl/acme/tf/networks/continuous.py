"""Torsos for continuous control."""

from tfrl import absent
from tfrl.networks.continuous import LayerNormAndResidualMLP as LayerNormAndResidualMLP
from tfrl.networks.continuous import LayerNormMLP as LayerNormMLP
from tfrl.networks.continuous import (
    NearZeroInitializedLinear as NearZeroInitializedLinear,
)

__getattr__, __path__ = absent.explained(__name__)
