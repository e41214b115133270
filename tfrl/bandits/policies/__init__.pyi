from . import bandit_policy as bandit_policy
from . import bernoulli_thompson_sampling_policy as bernoulli_thompson_sampling_policy
from . import boltzmann_reward_prediction_policy as boltzmann_reward_prediction_policy
from . import categorical_policy as categorical_policy
from . import constraints as constraints
from . import falcon_reward_prediction_policy as falcon_reward_prediction_policy
from . import (
    greedy_multi_objective_neural_policy as greedy_multi_objective_neural_policy,
)
from . import greedy_reward_prediction_policy as greedy_reward_prediction_policy
from . import largest as largest
from . import lin_ucb_policy as lin_ucb_policy
from . import linalg as linalg
from . import linear_bandit_policy as linear_bandit_policy
from . import linear_models as linear_models
from . import linear_thompson_sampling_policy as linear_thompson_sampling_policy
from . import loss_utils as loss_utils
from . import mixture_policy as mixture_policy
from . import neural_linucb_policy as neural_linucb_policy
from . import ranking_policy as ranking_policy
from . import reward_prediction_base_policy as reward_prediction_base_policy
from .bandit_policy import BanditPolicy as BanditPolicy
from .bernoulli_thompson_sampling_policy import (
    BernoulliThompsonSamplingPolicy as BernoulliThompsonSamplingPolicy,
)
from .boltzmann_reward_prediction_policy import (
    BoltzmannRewardPredictionPolicy as BoltzmannRewardPredictionPolicy,
)
from .categorical_policy import CategoricalPolicy as CategoricalPolicy
from .falcon_reward_prediction_policy import (
    FalconRewardPredictionPolicy as FalconRewardPredictionPolicy,
)
from .greedy_multi_objective_neural_policy import (
    GreedyMultiObjectiveNeuralPolicy as GreedyMultiObjectiveNeuralPolicy,
)
from .greedy_reward_prediction_policy import BootstrappedPolicy as BootstrappedPolicy
from .greedy_reward_prediction_policy import DropoutPolicy as DropoutPolicy
from .greedy_reward_prediction_policy import (
    EpsilonGreedyRewardPredictionPolicy as EpsilonGreedyRewardPredictionPolicy,
)
from .greedy_reward_prediction_policy import (
    GreedyRewardPredictionPolicy as GreedyRewardPredictionPolicy,
)
from .lin_ucb_policy import LinearUCBPolicy as LinearUCBPolicy
from .linear_bandit_policy import ExplorationStrategy as ExplorationStrategy
from .linear_bandit_policy import LinearBanditPolicy as LinearBanditPolicy
from .linear_thompson_sampling_policy import (
    LinearThompsonSamplingPolicy as LinearThompsonSamplingPolicy,
)
from .mixture_policy import MixturePolicy as MixturePolicy
from .neural_linucb_policy import NeuralLinUCBPolicy as NeuralLinUCBPolicy
from .ranking_policy import DescendingScoreRankingPolicy as DescendingScoreRankingPolicy
from .ranking_policy import NoPenaltyRankingPolicy as NoPenaltyRankingPolicy
from .ranking_policy import (
    PenalizeCosineDistanceRankingPolicy as PenalizeCosineDistanceRankingPolicy,
)
from .ranking_policy import RankingPolicy as RankingPolicy
from .reward_prediction_base_policy import (
    RewardPredictionBasePolicy as RewardPredictionBasePolicy,
)
