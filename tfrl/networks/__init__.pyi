from . import actor_distribution_network as actor_distribution_network
from . import actor_distribution_rnn_network as actor_distribution_rnn_network
from . import actor_network as actor_network
from . import actor_rnn_network as actor_rnn_network
from . import categorical_projection_network as categorical_projection_network
from . import categorical_q_network as categorical_q_network
from . import construction as construction
from . import critic_ensemble_network as critic_ensemble_network
from . import critic_network as critic_network
from . import critic_rnn_network as critic_rnn_network
from . import dueling_q_network as dueling_q_network
from . import encoding_network as encoding_network
from . import expand_dims_layer as expand_dims_layer
from . import heads as heads
from . import layer_utils as layer_utils
from . import layers as layers
from . import lstm_encoding_network as lstm_encoding_network
from . import mask_splitter_network as mask_splitter_network
from . import nest_map as nest_map
from . import network as network
from . import normal_projection_network as normal_projection_network
from . import normalized_network as normalized_network
from . import q_network as q_network
from . import q_rnn_network as q_rnn_network
from . import quantile_q_network as quantile_q_network
from . import sequential as sequential
from . import (
    state_dependent_noise_projection_network as state_dependent_noise_projection_network,  # noqa: E501
)
from . import test_utils as test_utils
from . import utils as utils
from . import value_network as value_network
from . import value_rnn_network as value_rnn_network
from .actor_distribution_network import (
    ActorDistributionNetwork as ActorDistributionNetwork,
)
from .actor_distribution_rnn_network import (
    ActorDistributionRnnNetwork as ActorDistributionRnnNetwork,
)
from .actor_network import ActorNetwork as ActorNetwork
from .actor_rnn_network import ActorRnnNetwork as ActorRnnNetwork
from .categorical_projection_network import (
    CategoricalProjectionNetwork as CategoricalProjectionNetwork,
)
from .categorical_q_network import CategoricalQNetwork as CategoricalQNetwork
from .critic_ensemble_network import (
    CriticEnsembleNetwork as CriticEnsembleNetwork,
)
from .critic_network import CriticNetwork as CriticNetwork
from .critic_rnn_network import CriticRnnNetwork as CriticRnnNetwork
from .critic_rnn_network import MemoryCriticNetwork as MemoryCriticNetwork
from .dueling_q_network import DuelingQNetwork as DuelingQNetwork
from .encoding_network import EncodingNetwork as EncodingNetwork
from .expand_dims_layer import ExpandDims as ExpandDims
from .heads.distributional import CategoricalHead as CategoricalHead
from .heads.distributional import DiscreteValuedHead as DiscreteValuedHead
from .heads.distributional import GaussianMixtureHead as GaussianMixtureHead
from .heads.distributional import (
    MultivariateGaussianMixture as MultivariateGaussianMixture,
)
from .heads.distributional import (
    MultivariateNormalDiagHead as MultivariateNormalDiagHead,
)
from .heads.distributional import UnivariateGaussianMixture as UnivariateGaussianMixture
from .heads.value_head import PolicyValueHead as PolicyValueHead
from .layers.continuous import CriticMultiplexer as CriticMultiplexer
from .layers.continuous import LayerNormAndResidualMLP as LayerNormAndResidualMLP
from .layers.continuous import LayerNormMLP as LayerNormMLP
from .layers.continuous import NearZeroInitializedLinear as NearZeroInitializedLinear
from .layers.encoders import observation_encoder as observation_encoder
from .layers.noisy import NoisyDense as NoisyDense
from .layers.preprocessing import default_preprocessing as default_preprocessing
from .lstm_encoding_network import LSTMEncodingNetwork as LSTMEncodingNetwork
from .lstm_encoding_network import LstmEncodingNetwork as LstmEncodingNetwork
from .mask_splitter_network import MaskSplitterNetwork as MaskSplitterNetwork
from .nest_map import NestFlatten as NestFlatten
from .nest_map import NestMap as NestMap
from .network import DistributionNetwork as DistributionNetwork
from .network import Network as Network
from .network import create_variables as create_variables
from .normal_projection_network import (
    NormalProjectionNetwork as NormalProjectionNetwork,
)
from .normalized_network import NormalizedNetwork as NormalizedNetwork
from .q_network import QNetwork as QNetwork
from .q_rnn_network import QRnnNetwork as QRnnNetwork
from .quantile_q_network import ImplicitQuantileNetwork as ImplicitQuantileNetwork
from .quantile_q_network import QuantileQNetwork as QuantileQNetwork
from .sequential import Sequential as Sequential
from .state_dependent_noise_projection_network import (
    StateDependentNoiseProjectionNetwork as StateDependentNoiseProjectionNetwork,
)
from .value_network import ValueNetwork as ValueNetwork
from .value_rnn_network import ValueRnnNetwork as ValueRnnNetwork
