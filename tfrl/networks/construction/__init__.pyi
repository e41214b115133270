from . import checks as checks
from . import recorded_layer as recorded_layer
from . import recurrence as recurrence
from . import seeding as seeding
