"""Observations as one array."""

from tfrl.wrappers.concatenate_observations import (
    ConcatObservationWrapper as ConcatObservationWrapper,
)
