from . import distributed as distributed
