from . import actor as actor
from . import experiment as experiment
from . import launchers as launchers
from . import learner as learner
from . import plan as plan
from . import reports as reports
from . import reverb_variable_container as reverb_variable_container
from . import run as run
from . import supervised_server as supervised_server
from . import tables as tables
from .experiment import Experiment as Experiment
from .launchers import LocalLauncher as LocalLauncher
from .plan import Plan as Plan
from .plan import Task as Task
from .reverb_variable_container import (
    ReverbVariableContainer as ReverbVariableContainer,
)
from .run import run_distributed as run_distributed
