"""The processes that are measured, one for each system.

Those of the peers run in the peers' own Python environments: they import nothing of
tfrl, and of this package only `serving`, which needs the standard library alone.
"""
