"""Re-exports the checkpointers at Reverb's module path."""

from __future__ import annotations

from tfrl.replay_service.checkpointers import (
    CheckpointerBase,
    DefaultCheckpointer,
    TempDirCheckpointer,
)

__all__ = ["CheckpointerBase", "DefaultCheckpointer", "TempDirCheckpointer"]
