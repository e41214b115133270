"""Trains in an environment in JAX on CPU:0 and, as on a GPU, on CPU:1; prints JSON.

The environment is the script's argument. `tests/train/loops/scripts/like_a_gpu.py` says
what is imitated. The logical devices of a process cannot be changed later, so this is a
script.
"""

import json
import os
import sys

from tests import int32_handles
from tests.environments.native.jax_environments import small_loops
from tests.train.loops.scripts import two_devices

ITERATIONS = 3


def ran(name, device, jit_compile):
    loop = small_loops.make_loop(name, device=device, jit_compile=jit_compile)
    return two_devices.ran(loop, ITERATIONS)


def compared(name, here, jit_compile):
    with int32_handles.recorded(on_the_host=True) as made:
        loop = ran(name, "CPU:1", jit_compile)
    return {
        "devices": two_devices.devices(loop.agent.variables()),
        "int32": made,
        "difference": two_devices.difference(
            two_devices.weights(loop), two_devices.weights(here)
        ),
        "same_counts": loop.info()[1:4] == here.info()[1:4],
    }


def results(name):
    here = ran(name, "CPU:0", jit_compile=False)
    return {
        "plain": compared(name, here, jit_compile=False),
        "compiled": compared(name, here, jit_compile=True),
    }


if __name__ == "__main__":
    # LLVM's optimizations would take much of the time.
    os.environ["XLA_FLAGS"] = "--xla_backend_optimization_level=0"
    two_devices.make_devices(soft_placement=True)
    print(json.dumps(results(sys.argv[1])))
