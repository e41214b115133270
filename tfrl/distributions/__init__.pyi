from . import masked as masked
from . import reparameterized_sampling as reparameterized_sampling
from . import shifted_categorical as shifted_categorical
from . import squash_to_spec as squash_to_spec
from . import utils as utils
from .masked import MaskedCategorical as MaskedCategorical
from .shifted_categorical import ShiftedCategorical as ShiftedCategorical
from .squash_to_spec import SquashToSpecNormal as SquashToSpecNormal
