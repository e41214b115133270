"""The rules of `tfrl migrate`, in the order in which they look at a program.

>>> from tfrl.migrate import rules
>>> rules.RULES[0].name
'absent-names'
"""

from tfrl.migrate.rules.dataclass_defaults import DataclassDefaults
from tfrl.migrate.rules.gym_calls import Calls
from tfrl.migrate.rules.gym_environments import Environments
from tfrl.migrate.rules.gym_making import Identifiers, Rendering
from tfrl.migrate.rules.keras_rules import (
    IntegerSizes,
    LegacySwitch,
    OldOptimizers,
    OptimizerArguments,
)
from tfrl.migrate.rules.library_names import (
    AbsentNames,
    GinNames,
    GymNames,
    KerasNames,
    ModuleStrings,
    NumpyNames,
    OldPlaces,
    OldTensorFlow,
    Packages,
)

RULES = (
    AbsentNames(),
    OldPlaces(),
    GymNames(),
    GinNames(),
    KerasNames(),
    OldTensorFlow(),
    NumpyNames(),
    Packages(),
    ModuleStrings(),
    IntegerSizes(),
    OptimizerArguments(),
    OldOptimizers(),
    LegacySwitch(),
    DataclassDefaults(),
    Rendering(),
    Identifiers(),
    Environments(),
    Calls(),
)
