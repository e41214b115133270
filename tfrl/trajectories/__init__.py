"""The data that flows between environments, policies, replay and agents.

An environment returns a `TimeStep`, and a policy returns a `PolicyStep`. A `Trajectory`
holds frames of experience, which combine both. A `Transition` is the `(s, a, s')` that
agents learn from. Importing `time_step` or `policy_step` does not import TensorFlow.

>>> import numpy as np
>>> from tfrl.trajectories import time_step, trajectory
>>> step = time_step.restart(np.zeros(2, np.float32))
>>> bool(step.is_first()), float(step.discount)
(True, 1.0)
>>> cut = time_step.truncation(np.zeros(2, np.float32), reward=1.0)
>>> bool(cut.is_last()), float(cut.discount)  # a time limit is not a termination
(True, 1.0)
>>> frame = trajectory.boundary(
...     observation=np.zeros(2), action=np.zeros(()), policy_info=(),
...     reward=np.float32(0), discount=np.float32(1),
... )
>>> bool(frame.is_boundary())
True
"""

from tfrl import imports

__getattr__, __dir__, __all__ = imports.attach_stub(__name__, __file__)
