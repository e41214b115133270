"""Episodes that start with idle steps."""

from tfrl.wrappers.noop_starts import NoopStartsWrapper as NoopStartsWrapper
