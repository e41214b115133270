from . import home_shards as home_shards
from . import limiter_windows as limiter_windows
from . import shares as shares
from .home_shards import HomeShard as HomeShard
from .sharded_client import ShardedClient as ShardedClient
from .sharded_replay_buffer import ShardedReplayBuffer as ShardedReplayBuffer
