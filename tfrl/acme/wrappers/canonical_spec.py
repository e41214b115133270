"""Actions in [-1, 1]."""

from tfrl.wrappers.canonical_spec import CanonicalSpecWrapper as CanonicalSpecWrapper
