from . import episodic_replay_buffer as episodic_replay_buffer
from . import episodic_table as episodic_table
from . import mixed_replay_buffer as mixed_replay_buffer
from . import py_hashed_replay_buffer as py_hashed_replay_buffer
from . import py_uniform_replay_buffer as py_uniform_replay_buffer
from . import replay_buffer as replay_buffer
from . import reverb_replay_buffer as reverb_replay_buffer
from . import reverb_utils as reverb_utils
from . import rlds_to_reverb as rlds_to_reverb
from . import table as table
from . import tf_prioritized_replay_buffer as tf_prioritized_replay_buffer
from . import tf_uniform_replay_buffer as tf_uniform_replay_buffer
from .episodic_replay_buffer import EpisodicReplayBuffer as EpisodicReplayBuffer
from .episodic_replay_buffer import (
    StatefulEpisodicReplayBuffer as StatefulEpisodicReplayBuffer,
)
from .episodic_table import EpisodicTable as EpisodicTable
from .mixed_replay_buffer import MixedReplayBuffer as MixedReplayBuffer
from .py_hashed_replay_buffer import FrameBuffer as FrameBuffer
from .py_hashed_replay_buffer import PyHashedReplayBuffer as PyHashedReplayBuffer
from .py_uniform_replay_buffer import PyUniformReplayBuffer as PyUniformReplayBuffer
from .replay_buffer import BufferInfo as BufferInfo
from .replay_buffer import ReplayBuffer as ReplayBuffer
from .reverb.reverb_rollouts import ReverbRolloutObserver as ReverbRolloutObserver
from .reverb_replay_buffer import ReverbReplayBuffer as ReverbReplayBuffer
from .reverb_utils import ReverbAddEpisodeObserver as ReverbAddEpisodeObserver
from .reverb_utils import ReverbAddTrajectoryObserver as ReverbAddTrajectoryObserver
from .reverb_utils import (
    ReverbTrajectorySequenceObserver as ReverbTrajectorySequenceObserver,
)
from .ring.frame_stacking import FrameStacking as FrameStacking
from .ring.hindsight import Hindsight as Hindsight
from .ring.relabelers import GoalWrapperRelabeler as GoalWrapperRelabeler
from .ring.relabelers import HostReward as HostReward
from .ring.row_format import RowFormat as RowFormat
from .ring.row_format import Window as Window
from .ring.sum_tree import SumTree as SumTree
from .table import Table as Table
from .tf_prioritized_replay_buffer import PrioritizedBufferInfo as PrioritizedBufferInfo
from .tf_prioritized_replay_buffer import (
    TFPrioritizedReplayBuffer as TFPrioritizedReplayBuffer,
)
from .tf_uniform_replay_buffer import TFUniformReplayBuffer as TFUniformReplayBuffer
