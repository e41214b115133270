from . import v2 as v2
