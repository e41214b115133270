from . import reverb_variable_container as reverb_variable_container
from .reverb_variable_container import (
    ReverbVariableContainer as ReverbVariableContainer,
)
