from . import action_repeat as action_repeat
from . import atari_wrapper as atari_wrapper
from . import base as base
from . import canonical_spec as canonical_spec
from . import concatenate_observations as concatenate_observations
from . import delayed_reward as delayed_reward
from . import expand_scalar_observation_shapes as expand_scalar_observation_shapes
from . import frame_stacking as frame_stacking
from . import gym_wrapper as gym_wrapper
from . import noop_starts as noop_starts
from . import observation_action_reward as observation_action_reward
from . import single_precision as single_precision
from . import step_limit as step_limit
from . import video as video
from .action_repeat import ActionRepeatWrapper as ActionRepeatWrapper
from .atari_wrapper import AtariWrapper as AtariWrapper
from .base import EnvironmentWrapper as EnvironmentWrapper
from .base import wrap_all as wrap_all
from .canonical_spec import CanonicalSpecWrapper as CanonicalSpecWrapper
from .concatenate_observations import (
    ConcatObservationWrapper as ConcatObservationWrapper,
)
from .delayed_reward import DelayedRewardWrapper as DelayedRewardWrapper
from .expand_scalar_observation_shapes import (
    ExpandScalarObservationShapesWrapper as ExpandScalarObservationShapesWrapper,
)
from .frame_stacking import FrameStacker as FrameStacker
from .frame_stacking import FrameStackingWrapper as FrameStackingWrapper
from .gym_wrapper import AtariGymWrapper as AtariGymWrapper
from .gym_wrapper import GymAtariAdapter as GymAtariAdapter
from .gym_wrapper import GymWrapper as GymWrapper
from .noop_starts import NoopStartsWrapper as NoopStartsWrapper
from .observation_action_reward import OAR as OAR
from .observation_action_reward import (
    ObservationActionRewardWrapper as ObservationActionRewardWrapper,
)
from .single_precision import SinglePrecisionWrapper as SinglePrecisionWrapper
from .step_limit import StepLimitWrapper as StepLimitWrapper
from .video import VideoWrapper as VideoWrapper
