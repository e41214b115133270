from . import acting as acting
from . import actor_policy as actor_policy
from . import async_policy_saver as async_policy_saver
from . import bases as bases
from . import batched_py_policy as batched_py_policy
from . import boltzmann_policy as boltzmann_policy
from . import categorical_q_policy as categorical_q_policy
from . import epsilon_greedy_policy as epsilon_greedy_policy
from . import fixed_policy as fixed_policy
from . import gaussian_policy as gaussian_policy
from . import greedy_policy as greedy_policy
from . import ou_noise_policy as ou_noise_policy
from . import partial_observation_policy as partial_observation_policy
from . import policy_info_updater_wrapper as policy_info_updater_wrapper
from . import policy_loader as policy_loader
from . import policy_saver as policy_saver
from . import py_epsilon_greedy_policy as py_epsilon_greedy_policy
from . import py_policy as py_policy
from . import py_tf_eager_policy as py_tf_eager_policy
from . import q_policy as q_policy
from . import qtopt_cem_policy as qtopt_cem_policy
from . import random_py_policy as random_py_policy
from . import random_tf_policy as random_tf_policy
from . import samplers as samplers
from . import scripted_py_policy as scripted_py_policy
from . import state_dependent_noise_policy as state_dependent_noise_policy
from . import state_recording_policy as state_recording_policy
from . import temporal_action_smoothing as temporal_action_smoothing
from . import tf_policy as tf_policy
from . import tf_py_policy as tf_py_policy
from . import utils as utils
from .actor_policy import ActorPolicy as ActorPolicy
from .async_policy_saver import AsyncPolicySaver as AsyncPolicySaver
from .batched_py_policy import BatchedPyPolicy as BatchedPyPolicy
from .boltzmann_policy import BoltzmannPolicy as BoltzmannPolicy
from .categorical_q_policy import CategoricalQPolicy as CategoricalQPolicy
from .epsilon_greedy_policy import EpsilonGreedyPolicy as EpsilonGreedyPolicy
from .fixed_policy import FixedPolicy as FixedPolicy
from .gaussian_policy import GaussianPolicy as GaussianPolicy
from .greedy_policy import GreedyPolicy as GreedyPolicy
from .ou_noise_policy import OUNoisePolicy as OUNoisePolicy
from .partial_observation_policy import (
    PartialObservationPolicy as PartialObservationPolicy,
)
from .policy_info_updater_wrapper import (
    PolicyInfoUpdaterWrapper as PolicyInfoUpdaterWrapper,
)
from .policy_saver import PolicySaver as PolicySaver
from .py_policy import PyPolicy as PyPolicy
from .py_tf_eager_policy import PyTFEagerPolicy as PyTFEagerPolicy
from .py_tf_eager_policy import SavedModelPyTFEagerPolicy as SavedModelPyTFEagerPolicy
from .q_policy import QPolicy as QPolicy
from .qtopt_cem_policy import CEMPolicy as CEMPolicy
from .random_py_policy import RandomPyPolicy as RandomPyPolicy
from .random_tf_policy import RandomTFPolicy as RandomTFPolicy
from .scripted_py_policy import ScriptedPyPolicy as ScriptedPyPolicy
from .state_dependent_noise_policy import (
    StateDependentNoisePolicy as StateDependentNoisePolicy,
)
from .state_recording_policy import StateRecordingPolicy as StateRecordingPolicy
from .temporal_action_smoothing import (
    TemporalActionSmoothing as TemporalActionSmoothing,
)
from .tf_policy import TFPolicy as TFPolicy
from .tf_py_policy import TFPyPolicy as TFPyPolicy
