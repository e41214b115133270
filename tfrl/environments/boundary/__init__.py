"""Checks and conversions of the values that go into and come out of environments.

`leaf_checks` has the checks of one array. `TimeStepChecker`, `ActionChecker` and
`NestCopier` apply them to nests.

>>> import numpy as np
>>> from tfrl.environments.boundary import action_arrays
>>> from tfrl.specs import BoundedArraySpec
>>> check = action_arrays.ActionChecker("Maze", BoundedArraySpec((), np.int32, 0, 3))
>>> check(np.int64(2))
[array(2, dtype=int32)]
>>> check(np.float32(2))  # doctest: +NORMALIZE_WHITESPACE
Traceback (most recent call last):
TypeError: action: got dtype float32, expected an array of dtype int32, for environment
Maze; cast the action.
"""
