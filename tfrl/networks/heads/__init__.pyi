from . import distributional as distributional
from . import value_head as value_head
