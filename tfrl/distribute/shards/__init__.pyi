from . import batch_shares as batch_shares
from . import home_shard as home_shard
from . import limiter_windows as limiter_windows
