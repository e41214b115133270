from . import bandit_policy as bandit_policy
from . import linalg as linalg
from . import linear_bandit_policy as linear_bandit_policy
from . import linear_models as linear_models
from .bandit_policy import BanditPolicy as BanditPolicy
from .linear_bandit_policy import ExplorationStrategy as ExplorationStrategy
from .linear_bandit_policy import LinearBanditPolicy as LinearBanditPolicy
