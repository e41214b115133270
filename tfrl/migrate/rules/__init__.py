"""The rules of `tfrl migrate`, in the order in which they look at a program.

>>> from tfrl.migrate import rules
>>> rules.RULES[0].name
'absent-names'
"""

from tfrl.migrate.rules import (
    dataclass_defaults,
    gym_calls,
    gym_environments,
    gym_making,
    keras_rules,
    library_names,
)

RULES = (
    library_names.AbsentNames(),
    library_names.OldPlaces(),
    library_names.GymNames(),
    library_names.GinNames(),
    library_names.KerasNames(),
    library_names.OldTensorFlow(),
    library_names.NumpyNames(),
    library_names.Packages(),
    library_names.ModuleStrings(),
    keras_rules.IntegerSizes(),
    keras_rules.Arguments(),
    keras_rules.OldOptimizers(),
    keras_rules.ModelFiles(),
    keras_rules.LegacySwitch(),
    dataclass_defaults.DataclassDefaults(),
    gym_making.Wrapped(),
    gym_making.Rendering(),
    gym_making.Identifiers(),
    gym_environments.Environments(),
    gym_calls.Calls(),
)
