"""Trains in an environment in JAX on CPU:0 and, as on a GPU, on CPU:1; prints JSON.

`tests/train/loops/scripts/like_a_gpu.py` says what is imitated. The logical devices of
a process cannot be changed later, so this is a script.
"""

import json
import os
import sys

import tfrl
from tests import int32_handles
from tests.environments.native.jax_environments import counters
from tests.train.loops.scripts import two_devices
from tfrl.environments import native

ITERATIONS = 3


def make_loop(device, jit_compile):
    environment, arguments = counters.MADE["gymnax"]
    dynamics = native.from_jax(
        environment,
        "gymnax",
        action_spec=counters.ACTION,
        max_episode_steps=9,
        **arguments,
    )
    small = {"collect_steps_per_iteration": 4, "minibatch_size": 6, "num_epochs": 1}
    return tfrl.PPO(
        dynamics,
        seed=0,
        num_envs=3,
        fc_layer_params=(4,),
        device=device,
        jit_compile=jit_compile,
        **small,
    ).build()


def results(jit_compile):
    here = two_devices.ran(make_loop("CPU:0", False), ITERATIONS)
    with int32_handles.recorded(on_the_host=True) as made:
        loop = two_devices.ran(make_loop("CPU:1", jit_compile), ITERATIONS)
    return {
        "devices": two_devices.devices(loop.agent.variables()),
        "int32": made,
        "difference": two_devices.difference(
            two_devices.weights(loop), two_devices.weights(here)
        ),
        "same_counts": loop.info()[1:4] == here.info()[1:4],
    }


if __name__ == "__main__":
    # LLVM's optimizations would take much of the time.
    os.environ["XLA_FLAGS"] = "--xla_backend_optimization_level=0"
    two_devices.make_devices(soft_placement=True)
    print(json.dumps(results(jit_compile=sys.argv[1] == "compiled")))
