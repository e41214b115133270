from . import bandit_agent as bandit_agent
from . import lin_ucb_agent as lin_ucb_agent
from . import linear_bandit_agent as linear_bandit_agent
from . import linear_thompson_sampling_agent as linear_thompson_sampling_agent
from .bandit_agent import BanditAgent as BanditAgent
from .lin_ucb_agent import LinearUCBAgent as LinearUCBAgent
from .linear_bandit_agent import ExplorationPolicy as ExplorationPolicy
from .linear_bandit_agent import LinearBanditAgent as LinearBanditAgent
from .linear_bandit_agent import (
    LinearBanditVariableCollection as LinearBanditVariableCollection,
)
from .linear_thompson_sampling_agent import (
    LinearThompsonSamplingAgent as LinearThompsonSamplingAgent,
)
