"""Measures tfrl's replay service."""

from __future__ import annotations

from benchmarks.workers import replaying
from tfrl import replay_service as reverb

if __name__ == "__main__":
    replaying.serve(reverb, ("tensorflow", "numpy"))
