from . import actor_distribution_network as actor_distribution_network
from . import actor_distribution_rnn_network as actor_distribution_rnn_network
from . import actor_network as actor_network
from . import actor_rnn_network as actor_rnn_network
from . import atari as atari
from . import categorical_projection_network as categorical_projection_network
from . import categorical_q_network as categorical_q_network
from . import checks as checks
from . import continuous as continuous
from . import critic_ensemble_network as critic_ensemble_network
from . import critic_network as critic_network
from . import critic_rnn_network as critic_rnn_network
from . import dense as dense
from . import discrete as discrete
from . import distributional as distributional
from . import distributions as distributions
from . import dueling_q_network as dueling_q_network
from . import duelling as duelling
from . import embedding as embedding
from . import encoding_network as encoding_network
from . import expand_dims_layer as expand_dims_layer
from . import initializers as initializers
from . import layer_utils as layer_utils
from . import legal_actions as legal_actions
from . import lstm_encoding_network as lstm_encoding_network
from . import mask_splitter_network as mask_splitter_network
from . import multihead as multihead
from . import multiplexers as multiplexers
from . import nest_map as nest_map
from . import network as network
from . import noise as noise
from . import noisy as noisy
from . import normal_projection_network as normal_projection_network
from . import normalized_network as normalized_network
from . import policy_value as policy_value
from . import preprocessing as preprocessing
from . import q_network as q_network
from . import q_rnn_network as q_rnn_network
from . import quantile as quantile
from . import quantile_q_network as quantile_q_network
from . import recorded_layer as recorded_layer
from . import recurrence as recurrence
from . import rescaling as rescaling
from . import seeding as seeding
from . import sequential as sequential
from . import signatures as signatures
from . import (
    state_dependent_noise_projection_network as state_dependent_noise_projection_network,  # noqa: E501
)
from . import stochastic as stochastic
from . import test_utils as test_utils
from . import utils as utils
from . import value_head as value_head
from . import value_network as value_network
from . import value_rnn_network as value_rnn_network
from . import vision as vision
from .actor_distribution_network import (
    ActorDistributionNetwork as ActorDistributionNetwork,
)
from .actor_distribution_rnn_network import (
    ActorDistributionRnnNetwork as ActorDistributionRnnNetwork,
)
from .actor_network import ActorNetwork as ActorNetwork
from .actor_rnn_network import ActorRnnNetwork as ActorRnnNetwork
from .atari import DeepIMPALAAtariNetwork as DeepIMPALAAtariNetwork
from .atari import DQNAtariNetwork as DQNAtariNetwork
from .atari import IMPALAAtariNetwork as IMPALAAtariNetwork
from .atari import R2D2AtariNetwork as R2D2AtariNetwork
from .categorical_projection_network import (
    CategoricalProjectionNetwork as CategoricalProjectionNetwork,
)
from .categorical_q_network import CategoricalQNetwork as CategoricalQNetwork
from .continuous import LayerNormAndResidualMLP as LayerNormAndResidualMLP
from .continuous import LayerNormMLP as LayerNormMLP
from .continuous import NearZeroInitializedLinear as NearZeroInitializedLinear
from .critic_ensemble_network import (
    CriticEnsembleNetwork as CriticEnsembleNetwork,
)
from .critic_network import CriticNetwork as CriticNetwork
from .critic_rnn_network import CriticRnnNetwork as CriticRnnNetwork
from .discrete import DiscreteFilteredQNetwork as DiscreteFilteredQNetwork
from .distributional import CategoricalHead as CategoricalHead
from .distributional import DiscreteValuedHead as DiscreteValuedHead
from .distributional import GaussianMixtureHead as GaussianMixtureHead
from .distributional import MultivariateGaussianMixture as MultivariateGaussianMixture
from .distributional import (
    MultivariateNormalDiagHead as MultivariateNormalDiagHead,
)
from .distributional import UnivariateGaussianMixture as UnivariateGaussianMixture
from .distributions import (
    DiscreteValuedDistribution as DiscreteValuedDistribution,
)
from .dueling_q_network import DuelingQNetwork as DuelingQNetwork
from .duelling import DuellingMLP as DuellingMLP
from .embedding import OAREmbedding as OAREmbedding
from .encoding_network import EncodingNetwork as EncodingNetwork
from .expand_dims_layer import ExpandDims as ExpandDims
from .legal_actions import EpsilonGreedy as EpsilonGreedy
from .legal_actions import MaskedSequential as MaskedSequential
from .legal_actions import (
    NetworkWithMaskedEpsilonGreedy as NetworkWithMaskedEpsilonGreedy,
)
from .lstm_encoding_network import LSTMEncodingNetwork as LSTMEncodingNetwork
from .lstm_encoding_network import LstmEncodingNetwork as LstmEncodingNetwork
from .mask_splitter_network import MaskSplitterNetwork as MaskSplitterNetwork
from .multihead import Multihead as Multihead
from .multiplexers import CriticMultiplexer as CriticMultiplexer
from .nest_map import NestFlatten as NestFlatten
from .nest_map import NestMap as NestMap
from .network import DistributionNetwork as DistributionNetwork
from .network import Network as Network
from .network import create_variables as create_variables
from .noise import ClippedGaussian as ClippedGaussian
from .noisy import NoisyDense as NoisyDense
from .normal_projection_network import (
    NormalProjectionNetwork as NormalProjectionNetwork,
)
from .normalized_network import NormalizedNetwork as NormalizedNetwork
from .policy_value import PolicyValueHead as PolicyValueHead
from .preprocessing import default_preprocessing as default_preprocessing
from .q_network import QNetwork as QNetwork
from .q_rnn_network import QRnnNetwork as QRnnNetwork
from .quantile import IQNHead as IQNHead
from .quantile_q_network import ImplicitQuantileNetwork as ImplicitQuantileNetwork
from .quantile_q_network import QuantileQNetwork as QuantileQNetwork
from .rescaling import ClipToSpec as ClipToSpec
from .rescaling import RescaleToSpec as RescaleToSpec
from .rescaling import TanhToSpec as TanhToSpec
from .sequential import DeepRNN as DeepRNN
from .sequential import Sequential as Sequential
from .state_dependent_noise_projection_network import (
    StateDependentNoiseProjectionNetwork as StateDependentNoiseProjectionNetwork,
)
from .stochastic import ApproximateMode as ApproximateMode
from .stochastic import ExpQWeightedPolicy as ExpQWeightedPolicy
from .stochastic import StochasticMeanHead as StochasticMeanHead
from .stochastic import StochasticModeHead as StochasticModeHead
from .stochastic import StochasticSamplingHead as StochasticSamplingHead
from .value_network import ValueNetwork as ValueNetwork
from .value_rnn_network import ValueRnnNetwork as ValueRnnNetwork
from .vision import AtariTorso as AtariTorso
from .vision import DeepAtariTorso as DeepAtariTorso
from .vision import ResNetTorso as ResNetTorso
