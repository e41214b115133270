from . import coordination as coordination
from . import experiment as experiment
from . import launch as launch
from . import lockstep as lockstep
from . import process_roles as process_roles
from . import replay_servers as replay_servers
from . import roles as roles
from . import run as run
from . import shards as shards
from . import weights as weights
from . import worker as worker
from .experiment import Experiment as Experiment
from .launch.command_launcher import CommandLauncher as CommandLauncher
from .launch.local_launcher import LocalLauncher as LocalLauncher
from .launch.plan import Launcher as Launcher
from .launch.plan import Plan as Plan
from .launch.ray_launcher import RayLauncher as RayLauncher
from .process_roles import Task as Task
from .run import run_distributed as run_distributed
from .shards.home_shard import HomeShard as HomeShard
from .shards.sharded_client import ShardedClient as ShardedClient
from .shards.sharded_replay_buffer import ShardedReplayBuffer as ShardedReplayBuffer
from .weights.reverb_variable_container import (
    ReverbVariableContainer as ReverbVariableContainer,
)
