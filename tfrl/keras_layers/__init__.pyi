from . import batch_renorm as batch_renorm
from . import bias_layer as bias_layer
from . import dynamic_unroll_layer as dynamic_unroll_layer
from . import inner_reshape as inner_reshape
from . import permanent_variable_rate_dropout as permanent_variable_rate_dropout
from . import rnn_wrapper as rnn_wrapper
from . import squashed_outer_wrapper as squashed_outer_wrapper
from . import stacked_dense as stacked_dense
from .batch_renorm import BatchRenorm as BatchRenorm
from .bias_layer import BiasLayer as BiasLayer
from .dynamic_unroll_layer import DynamicUnroll as DynamicUnroll
from .inner_reshape import InnerReshape as InnerReshape
from .permanent_variable_rate_dropout import (
    PermanentVariableRateDropout as PermanentVariableRateDropout,
)
from .rnn_wrapper import RNNWrapper as RNNWrapper
from .squashed_outer_wrapper import SquashedOuterWrapper as SquashedOuterWrapper
from .stacked_dense import StackedDense as StackedDense
