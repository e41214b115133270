from . import base as base
from . import episode as episode
from . import experience as experience
from . import sequence as sequence
from . import structured as structured
from . import transition as transition
from . import utils as utils
from .base import DEFAULT_PRIORITY_TABLE as DEFAULT_PRIORITY_TABLE
from .base import PriorityFn as PriorityFn
from .base import PriorityFnInput as PriorityFnInput
from .base import ReverbAdder as ReverbAdder
from .base import Step as Step
from .base import Trajectory as Trajectory
from .episode import EpisodeAdder as EpisodeAdder
from .episode import PaddedEpisodeAdder as PaddedEpisodeAdder
from .experience import to_experience as to_experience
from .sequence import EndBehavior as EndBehavior
from .sequence import SequenceAdder as SequenceAdder
from .structured import StructuredAdder as StructuredAdder
from .structured import (
    create_n_step_transition_config as create_n_step_transition_config,
)
from .structured import create_sequence_config as create_sequence_config
from .structured import create_step_spec as create_step_spec
from .structured import n_step_from_trajectory as n_step_from_trajectory
from .transition import NStepTransitionAdder as NStepTransitionAdder
