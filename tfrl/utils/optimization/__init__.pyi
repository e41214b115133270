from . import optimizers as optimizers
from . import schedules as schedules
