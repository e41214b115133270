from . import actor as actor
from . import command_launcher as command_launcher
from . import coordinator as coordinator
from . import experiment as experiment
from . import first_server as first_server
from . import home_shards as home_shards
from . import home_writer as home_writer
from . import launchers as launchers
from . import learner as learner
from . import limiter_windows as limiter_windows
from . import manifest as manifest
from . import membership as membership
from . import plan as plan
from . import ray_launcher as ray_launcher
from . import remote_process as remote_process
from . import reports as reports
from . import reverb_variable_container as reverb_variable_container
from . import run as run
from . import servers as servers
from . import shares as shares
from . import supervised_server as supervised_server
from . import tables as tables
from . import tasks as tasks
from . import view as view
from . import worker as worker
from .command_launcher import CommandLauncher as CommandLauncher
from .experiment import Experiment as Experiment
from .home_shards import HomeShard as HomeShard
from .launchers import LocalLauncher as LocalLauncher
from .plan import Plan as Plan
from .ray_launcher import RayLauncher as RayLauncher
from .reverb_variable_container import (
    ReverbVariableContainer as ReverbVariableContainer,
)
from .run import run_distributed as run_distributed
from .sharded_client import ShardedClient as ShardedClient
from .sharded_replay_buffer import ShardedReplayBuffer as ShardedReplayBuffer
from .tasks import Task as Task
