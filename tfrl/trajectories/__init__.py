"""What flows between environments, policies, replay and agents.

`TimeStep` is what an environment says, `PolicyStep` what a policy says; a `Trajectory`
is one frame of experience made of both, and a `Transition` is the `(s, a, s')` that
agents learn from. `time_step` and `policy_step` import without TensorFlow.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
