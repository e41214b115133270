"""Measures Reverb 0.14, in the Python environment of TF-Agents."""

from __future__ import annotations

import reverb

from benchmarks.workers import replaying

if __name__ == "__main__":
    replaying.serve(reverb, ("dm-reverb", "tensorflow"))
