"""Episodes of limited length."""

from tfrl.wrappers.step_limit import StepLimitWrapper as StepLimitWrapper
