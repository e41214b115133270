"""Scalars as arrays."""

from tfrl.wrappers.expand_scalar_observation_shapes import (
    ExpandScalarObservationShapesWrapper as ExpandScalarObservationShapesWrapper,
)
