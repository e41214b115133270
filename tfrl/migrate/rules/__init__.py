"""The rules of `tfrl migrate`, in the order in which they look at a program.

>>> from tfrl.migrate import rules
>>> rules.RULES[0].name
'absent-names'
"""

from tfrl.migrate.rules import gym_rules, keras_rules, library_names

RULES = (
    library_names.absent_names,
    *library_names.MOVED,
    library_names.packages,
    library_names.module_strings,
    keras_rules.integer_sizes,
    keras_rules.arguments,
    keras_rules.old_optimizers,
    keras_rules.model_files,
    keras_rules.legacy_switch,
    keras_rules.dataclass_defaults,
    gym_rules.wrapped,
    gym_rules.rendering,
    gym_rules.identifiers,
    gym_rules.environments,
    gym_rules.calls,
)
