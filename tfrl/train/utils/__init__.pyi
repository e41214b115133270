from . import replay_buffer_utils as replay_buffer_utils
from . import spec_utils as spec_utils
from . import strategy_utils as strategy_utils
from . import train_utils as train_utils
