"""Command lines for the checks of the replay service."""

from __future__ import annotations

import argparse
from collections.abc import Sequence


def parser(module: str, description: str | None) -> argparse.ArgumentParser:
    """Returns a parser for `python -m benchmarks.<module>`."""
    return argparse.ArgumentParser(
        prog=f"python -m benchmarks.{module}",
        description=description,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )


def conclude(faults: Sequence[str]) -> int:
    """Prints the faults, if there are any; returns the exit status."""
    for fault in faults:
        print(f"WRONG: {fault}")
    if not faults:
        print("All right.")
    return 1 if faults else 0
