"""Numbers of 32 bits."""

from tfrl.wrappers.single_precision import (
    SinglePrecisionWrapper as SinglePrecisionWrapper,
)
