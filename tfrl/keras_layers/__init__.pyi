from . import bias_layer as bias_layer
from . import permanent_variable_rate_dropout as permanent_variable_rate_dropout
from .bias_layer import BiasLayer as BiasLayer
from .permanent_variable_rate_dropout import (
    PermanentVariableRateDropout as PermanentVariableRateDropout,
)
