"""Stacks of observations."""

from tfrl.wrappers.frame_stacking import FrameStacker as FrameStacker
from tfrl.wrappers.frame_stacking import FrameStackingWrapper as FrameStackingWrapper
