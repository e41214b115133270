from . import actors as actors
from . import d4pg as d4pg
from . import dmpo as dmpo
from . import learning as learning
from . import mpo as mpo
from . import replay_agent as replay_agent
