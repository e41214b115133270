"""The rules of `tfrl migrate`, in the order in which they look at a program.

>>> from tfrl.migrate import rules
>>> rules.RULES[0].name
'absent-names'
"""

from tfrl.migrate.rules import gym_rules, keras_rules, library_names

RULES = (
    library_names.AbsentNames(),
    *library_names.MOVED,
    library_names.Packages(),
    library_names.ModuleStrings(),
    keras_rules.IntegerSizes(),
    keras_rules.Arguments(),
    keras_rules.OldOptimizers(),
    keras_rules.ModelFiles(),
    keras_rules.LegacySwitch(),
    keras_rules.DataclassDefaults(),
    gym_rules.Wrapped(),
    gym_rules.Rendering(),
    gym_rules.Identifiers(),
    gym_rules.Environments(),
    gym_rules.Calls(),
)
