from . import lockstep_actor as lockstep_actor
from . import lockstep_learner as lockstep_learner
from . import rounds as rounds
