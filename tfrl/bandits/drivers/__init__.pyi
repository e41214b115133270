from . import driver_utils as driver_utils
