"""The parts of `tfrl.utils.nest_utils`: structure, checks and batching of nests.

>>> import numpy as np
>>> from tfrl.utils.nests import structure
>>> structure.assert_same_structure({"a": 1}, {"a": 2})
"""
