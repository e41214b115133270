"""Trains small runs in this process, and prints checksums of all their variables.

    TFRL_PORTABLE=1 python -m tests.portable_runs dqn/plain ppo/compiled

So they can be trained on another processor, or on an emulated one.
"""

import hashlib
import sys

from tests.portable_checksums import CHECKSUMS
from tfrl.algorithms import registry

_REPLAY = {"initial_collect_steps": 64, "num_iterations": 40}
_DISCRETE = {"environment": "CartPole-v1", **_REPLAY, "fc_layer_params": (50, 30)}
SETTINGS = {
    "dqn": {**_DISCRETE, "gamma": 0.995},  # As when the checksums were made.
    "c51": _DISCRETE,
    "sac": {"environment": "Pendulum-v1", **_REPLAY},
    "ppo": {"environment": "CartPole-v1", "num_iterations": 1},
    "impala": {"environment": "CartPole-v1", "num_iterations": 5},
}


def checksum(name):
    """Trains the run with a name, such as "dqn/plain"."""
    import numpy as np  # Not before tfrl, which sets what NumPy reads.

    algorithm, mode = name.split("/")
    made = registry.find(algorithm)(
        seed=0, jit_compile=mode == "compiled", **SETTINGS[algorithm]
    )
    made.learn(progress=False)
    digest = hashlib.sha256()
    for variable in made.agent.variables():
        digest.update(np.ascontiguousarray(np.asarray(variable)).tobytes())
    return digest.hexdigest()[:12]


if __name__ == "__main__":
    for name in sys.argv[1:] or CHECKSUMS:
        print(name, checksum(name), flush=True)
