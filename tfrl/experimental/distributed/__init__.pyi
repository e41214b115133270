from . import actor_learner as actor_learner
from . import reports as reports
from . import reverb_variable_container as reverb_variable_container
from .actor_learner import Experiment as Experiment
from .reverb_variable_container import (
    ReverbVariableContainer as ReverbVariableContainer,
)
