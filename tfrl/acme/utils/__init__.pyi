from . import counting as counting
from . import loggers as loggers
from . import paths as paths
from . import tf2_utils as tf2_utils
