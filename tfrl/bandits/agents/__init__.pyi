from . import bandit_agent as bandit_agent
from . import bernoulli_thompson_sampling_agent as bernoulli_thompson_sampling_agent
from . import dropout_thompson_sampling_agent as dropout_thompson_sampling_agent
from . import examples as examples
from . import exp3_agent as exp3_agent
from . import exp3_mixture_agent as exp3_mixture_agent
from . import greedy_multi_objective_neural_agent as greedy_multi_objective_neural_agent
from . import greedy_reward_prediction_agent as greedy_reward_prediction_agent
from . import lin_ucb_agent as lin_ucb_agent
from . import linear_bandit_agent as linear_bandit_agent
from . import linear_thompson_sampling_agent as linear_thompson_sampling_agent
from . import mixture_agent as mixture_agent
from . import neural_boltzmann_agent as neural_boltzmann_agent
from . import neural_epsilon_greedy_agent as neural_epsilon_greedy_agent
from . import neural_falcon_agent as neural_falcon_agent
from . import neural_linucb_agent as neural_linucb_agent
from . import ranking_agent as ranking_agent
from . import static_mixture_agent as static_mixture_agent
from . import utils as utils
from .bandit_agent import BanditAgent as BanditAgent
from .bernoulli_thompson_sampling_agent import (
    BernoulliThompsonSamplingAgent as BernoulliThompsonSamplingAgent,
)
from .dropout_thompson_sampling_agent import BootstrappedAgent as BootstrappedAgent
from .dropout_thompson_sampling_agent import (
    DropoutThompsonSamplingAgent as DropoutThompsonSamplingAgent,
)
from .exp3_agent import Exp3Agent as Exp3Agent
from .exp3_mixture_agent import Exp3MixtureAgent as Exp3MixtureAgent
from .exp3_mixture_agent import (
    Exp3MixtureVariableCollection as Exp3MixtureVariableCollection,
)
from .greedy_multi_objective_neural_agent import (
    GreedyMultiObjectiveNeuralAgent as GreedyMultiObjectiveNeuralAgent,
)
from .greedy_reward_prediction_agent import (
    GreedyRewardPredictionAgent as GreedyRewardPredictionAgent,
)
from .lin_ucb_agent import LinearUCBAgent as LinearUCBAgent
from .linear_bandit_agent import ExplorationPolicy as ExplorationPolicy
from .linear_bandit_agent import LinearBanditAgent as LinearBanditAgent
from .linear_bandit_agent import (
    LinearBanditVariableCollection as LinearBanditVariableCollection,
)
from .linear_thompson_sampling_agent import (
    LinearThompsonSamplingAgent as LinearThompsonSamplingAgent,
)
from .mixture_agent import MixtureAgent as MixtureAgent
from .neural_boltzmann_agent import NeuralBoltzmannAgent as NeuralBoltzmannAgent
from .neural_epsilon_greedy_agent import (
    NeuralEpsilonGreedyAgent as NeuralEpsilonGreedyAgent,
)
from .neural_falcon_agent import NeuralFalconAgent as NeuralFalconAgent
from .neural_linucb_agent import NeuralLinUCBAgent as NeuralLinUCBAgent
from .neural_linucb_agent import (
    NeuralLinUCBVariableCollection as NeuralLinUCBVariableCollection,
)
from .ranking_agent import RankingAgent as RankingAgent
from .static_mixture_agent import StaticMixtureAgent as StaticMixtureAgent
