from . import discrete_valued as discrete_valued
from . import gumbel_softmax as gumbel_softmax
from . import masked as masked
from . import recorded as recorded
from . import reparameterized_sampling as reparameterized_sampling
from . import sampling as sampling
from . import shifted_categorical as shifted_categorical
from . import squash_to_spec as squash_to_spec
from . import state_dependent_normal as state_dependent_normal
from . import tanh_bijector_stable as tanh_bijector_stable
from . import utils as utils
from .discrete_valued import (
    DiscreteValuedDistribution as DiscreteValuedDistribution,
)
from .gumbel_softmax import GumbelSoftmax as GumbelSoftmax
from .masked import MaskedCategorical as MaskedCategorical
from .shifted_categorical import ShiftedCategorical as ShiftedCategorical
from .squash_to_spec import ApproximateModeDistribution as ApproximateModeDistribution
from .squash_to_spec import SquashToSpecNormal as SquashToSpecNormal
from .state_dependent_normal import StateDependentNormal as StateDependentNormal
