"""tfrl's speed beside its peers', measured in turn: `python -m benchmarks --help`."""
