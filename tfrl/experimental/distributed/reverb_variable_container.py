"""TF-Agents' name of `tfrl.distribute.weights.reverb_variable_container`."""

from tfrl.distribute.weights.reverb_variable_container import (
    DEFAULT_TABLE as DEFAULT_TABLE,
)
from tfrl.distribute.weights.reverb_variable_container import POLICY_KEY as POLICY_KEY
from tfrl.distribute.weights.reverb_variable_container import (
    TRAIN_STEP_KEY as TRAIN_STEP_KEY,
)
from tfrl.distribute.weights.reverb_variable_container import (
    ReverbVariableContainer as ReverbVariableContainer,
)

__all__ = [
    "DEFAULT_TABLE",
    "POLICY_KEY",
    "TRAIN_STEP_KEY",
    "ReverbVariableContainer",
]
