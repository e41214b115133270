from . import deterministic as deterministic
from . import prediction as prediction
from . import traced_action as traced_action
from . import validation as validation
