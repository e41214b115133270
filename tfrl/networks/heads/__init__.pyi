from . import distributional as distributional
from . import policy_value as policy_value
from . import value_head as value_head
