from . import bandit_py_environment as bandit_py_environment
from . import bandit_tf_environment as bandit_tf_environment
from . import (
    bernoulli_action_mask_tf_environment as bernoulli_action_mask_tf_environment,
)
from . import bernoulli_py_environment as bernoulli_py_environment
from . import classification_environment as classification_environment
from . import dataset_utilities as dataset_utilities
from . import drifting_linear_environment as drifting_linear_environment
from . import environment_utilities as environment_utilities
from . import loading as loading
from . import movielens_per_arm_py_environment as movielens_per_arm_py_environment
from . import movielens_py_environment as movielens_py_environment
from . import (
    non_stationary_stochastic_environment as non_stationary_stochastic_environment,
)
from . import piecewise_bernoulli_py_environment as piecewise_bernoulli_py_environment
from . import piecewise_stochastic_environment as piecewise_stochastic_environment
from . import problems as problems
from . import random_bandit_environment as random_bandit_environment
from . import ranking_environment as ranking_environment
from . import rounds as rounds
from . import (
    stationary_stochastic_per_arm_py_environment as stationary_stochastic_per_arm_py_environment,  # noqa: E501
)
from . import (
    stationary_stochastic_py_environment as stationary_stochastic_py_environment,
)
from . import (
    stationary_stochastic_structured_py_environment as stationary_stochastic_structured_py_environment,  # noqa: E501
)
from . import wheel_py_environment as wheel_py_environment
from .bandit_py_environment import BanditPyEnvironment as BanditPyEnvironment
from .bandit_py_environment import ProblemPyEnvironment as ProblemPyEnvironment
from .bandit_tf_environment import BanditTFEnvironment as BanditTFEnvironment
from .bernoulli_action_mask_tf_environment import (
    BernoulliActionMaskTFEnvironment as BernoulliActionMaskTFEnvironment,
)
from .bernoulli_py_environment import BernoulliPyEnvironment as BernoulliPyEnvironment
from .classification_environment import (
    ClassificationBanditEnvironment as ClassificationBanditEnvironment,
)
from .drifting_linear_environment import (
    DriftingLinearEnvironment as DriftingLinearEnvironment,
)
from .loading import load as load
from .loading import names as names
from .movielens_per_arm_py_environment import (
    MovieLensPerArmPyEnvironment as MovieLensPerArmPyEnvironment,
)
from .movielens_py_environment import MovieLensPyEnvironment as MovieLensPyEnvironment
from .non_stationary_stochastic_environment import (
    EnvironmentDynamics as EnvironmentDynamics,
)
from .non_stationary_stochastic_environment import (
    NonStationaryStochasticEnvironment as NonStationaryStochasticEnvironment,
)
from .piecewise_bernoulli_py_environment import (
    PiecewiseBernoulliPyEnvironment as PiecewiseBernoulliPyEnvironment,
)
from .piecewise_stochastic_environment import (
    PiecewiseStochasticEnvironment as PiecewiseStochasticEnvironment,
)
from .random_bandit_environment import (
    RandomBanditEnvironment as RandomBanditEnvironment,
)
from .ranking_environment import (
    ExplicitPositionalBiasRankingEnvironment as ExplicitPositionalBiasRankingEnvironment,  # noqa: E501
)
from .ranking_environment import RankingPyEnvironment as RankingPyEnvironment
from .ranking_environment import RankingTFEnvironment as RankingTFEnvironment
from .stationary_stochastic_per_arm_py_environment import (
    StationaryStochasticPerArmPyEnvironment as StationaryStochasticPerArmPyEnvironment,
)
from .stationary_stochastic_py_environment import (
    StationaryStochasticPyEnvironment as StationaryStochasticPyEnvironment,
)
from .stationary_stochastic_structured_py_environment import (
    StationaryStochasticStructuredPyEnvironment as StationaryStochasticStructuredPyEnvironment,  # noqa: E501
)
from .wheel_py_environment import WheelPyEnvironment as WheelPyEnvironment
