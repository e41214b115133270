"""The measured processes, one for each system.

The workers of peers run in the peers' own Python environments. They import only modules
that do not need tfrl, such as `serving`, which needs only the standard library.
"""
