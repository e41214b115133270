"""A bandit for tests of environments and their checks."""

import numpy as np

from tfrl.bandits.environments import bandit_py_environment
from tfrl.specs import array_spec


class Even(bandit_py_environment.BanditPyEnvironment):
    """Rewards even actions."""

    def __init__(self):
        spec = array_spec.BoundedArraySpec((), np.int32, 0, 1)
        super().__init__(spec, spec)

    def _observe(self):
        return np.int32(0)

    def _apply_action(self, action):
        return 1 - action % 2
