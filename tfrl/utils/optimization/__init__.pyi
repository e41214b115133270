from . import laprop as laprop
from . import optimizers as optimizers
from . import schedules as schedules
from .laprop import LaProp as LaProp
from .schedules import Least as Least
