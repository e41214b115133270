from . import reward_normalizer as reward_normalizer
from . import running_moments as running_moments
