from . import bias_layer as bias_layer
from . import inner_reshape as inner_reshape
from . import permanent_variable_rate_dropout as permanent_variable_rate_dropout
from . import squashed_outer_wrapper as squashed_outer_wrapper
from .bias_layer import BiasLayer as BiasLayer
from .inner_reshape import InnerReshape as InnerReshape
from .permanent_variable_rate_dropout import (
    PermanentVariableRateDropout as PermanentVariableRateDropout,
)
from .squashed_outer_wrapper import SquashedOuterWrapper as SquashedOuterWrapper
