"""The old path of `tfrl.specs.spec_json`, kept for one release."""

from __future__ import annotations

import warnings

from tfrl.specs.spec_json import Leaf, decode, encode, leaves

__all__ = ["Leaf", "decode", "encode", "leaves"]

warnings.warn(
    "tfrl.replay_service.specs_json has moved to tfrl.specs.spec_json.",
    DeprecationWarning,
    stacklevel=2,
)
