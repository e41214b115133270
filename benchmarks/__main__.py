"""Runs `python -m benchmarks`."""

import sys

from benchmarks import command_line

sys.exit(command_line.main())
