"""Trains the agents of the examples as on a machine with a GPU; prints JSON.

The agents live on the second of two logical CPU devices. As TensorFlow does on a
machine with a GPU, variables of int32 are made on the first one, whatever the scope,
and an operation without a kernel for its device runs on the CPU. The first argument is
"gymnasium", "native" or "sweep", the second one the name of an agent.
"""

import functools
import importlib
import json
import os
import sys
import warnings
from unittest import mock

import tensorflow as tf

from examples import cli
from tests import int32_handles
from tests.train.loops.scripts import two_devices
from tfrl import train
from tfrl.environments import native
from tfrl.specs import tensor_spec

# The script, and the configuration file, of each agent of the examples.
AGENTS = {
    "dqn": ("dqn", "dqn"),
    "sac": ("sac", "sac"),
    "tqc": ("sac", "sac"),
    "discrete_sac": ("sac", "discrete_sac"),
    "td3": ("td3", "td3"),
    "ddpg": ("td3", "td3"),
    "d4pg": ("d4pg", "d4pg"),
    "dmpo": ("dmpo", "dmpo"),
    "mpo": ("dmpo", "mpo"),
    "ppo": ("ppo", "ppo"),
    "a2c": ("ppo", "a2c"),
    "impala": ("impala", "impala"),
    "pqn": ("pqn", "pqn"),
    "reinforce": ("reinforce", "reinforce"),
    "iql": ("offline", "offline"),
    "cql": ("offline", "offline"),
    "bc": ("offline", "offline"),
}
LAYERS = (
    "fc_layer_params",
    "actor_fc_layer_params",
    "critic_fc_layer_params",
)
TINY = {
    **dict.fromkeys(LAYERS, (8,)),
    "num_envs": 2,
    "num_iterations": 100,
    "initial_collect_steps": 20,
    "replay_capacity": 1_200,
    "batch_size": 8,
    "num_epochs": 2,
    "num_atoms": 5,
    "num_quantiles": 3,
    "num_dropped_quantiles": 1,
    "num_samples": 2,
    "collect_episodes_per_iteration": 2,
}
# Each setting of `jit_compile`, and the iterations of each call of `run`.
MODES = {False: (1, 2), "auto": (1, 2), True: ()}


def configuration(name, device):
    """The example's configuration of an agent, with tiny sizes."""
    config = importlib.import_module(f"configs.{AGENTS[name][1]}").get_config()
    config.device = device
    tiny = {**TINY, "agent": name}
    if "minibatch_size" in config:
        tiny |= {"collect_steps_per_iteration": 8, "minibatch_size": 4}
    if name == "a2c":
        tiny["minibatch_size"] = 0
    config.update({key: value for key, value in tiny.items() if key in config})
    return config


@functools.cache
def example(name):
    """The module of an agent's example."""
    # Each of them defines the same flags.
    with mock.patch.object(cli, "define_config"):
        return importlib.import_module(f"examples.train_{AGENTS[name][0]}")


def make_loop(name, kind, device, jit_compile, seed=0):
    """The example's loop of an agent.

    Args:
      name: The agent.
      kind: "native" for a native environment, else one in Python.
      device: The device of the agent.
      jit_compile: The loop's argument.
      seed: The seed.
    """
    config = configuration(name, device)
    config.seed = seed
    module = example(name)
    num_envs = config.get("num_envs", 1)
    if kind == "native":
        with train.device_scope(device):
            environment = native.load(config.env, num_envs, seed)
    else:
        environment = cli.make_environment(config.env, num_envs, seed)
    with train.device_scope(device):
        agent = (module.dqn if name == "dqn" else module).make_agent(
            config, environment
        )
        agent.initialize()
    make = getattr(module, "make_loop", None) or module.off_policy.make_loop
    patches = [
        mock.patch.object(train, kind.__name__, given(kind, jit_compile))
        for kind in (
            train.EpisodicLoop,
            train.OfflineLoop,
            train.OffPolicyLoop,
            train.OnPolicyLoop,
        )
    ]
    if name in ("iql", "cql", "bc"):
        patches.append(mock.patch.object(module, "load", random_frames))
    if kind == "native":
        # The example's environment fills its buffer on the CPU.
        there = functools.partial(at, train.device_scope, device)
        patches.append(mock.patch.object(train, "device_scope", there))
    for patch in patches:
        patch.start()
    try:
        return make(config, environment, agent)
    finally:
        for patch in patches:
            patch.stop()


def at(device_scope, device, _):
    return device_scope(device)


def given(make, jit_compile):
    """`make` with other arguments than the example's."""
    fixed = {"jit_compile": jit_compile}
    if make is train.OffPolicyLoop:
        # A plain loop on the host would draw other batches, from a pipeline.
        fixed["sampling"] = "variables"
    return lambda *args, **kwargs: make(*args, **{**kwargs, **fixed})


def random_frames(path, spec):
    """Frames in place of recorded ones, without the ends of episodes."""
    del path
    small = tf.nest.map_structure(
        lambda leaf: tensor_spec.BoundedTensorSpec(leaf.shape, leaf.dtype, -1, 1), spec
    )
    frames = tensor_spec.sample_spec_nest(small, tf.constant([0, 1]), (50,))
    middle = tf.ones([50], tf.int32)
    return tf.data.Dataset.from_tensor_slices(
        frames._replace(step_type=middle, next_step_type=middle, discount=tf.ones([50]))
    )


def results(kind, name):
    """What comes of an agent on the second device, for each setting."""
    here = two_devices.ran(make_loop(name, kind, "CPU:0", False), *MODES[False])
    found = {}
    for mode, calls in MODES.items():
        with int32_handles.recorded(on_the_host=True) as made:
            loop = make_loop(name, kind, "CPU:1", mode)
            two_devices.ran(loop, *calls)
        found[str(mode)] = {
            "compiled": loop._jit_compile,
            "devices": two_devices.devices(loop.agent.variables()),
            "int32": made,
        }
        if calls:
            found[str(mode)] |= {
                "difference": two_devices.difference(
                    two_devices.weights(loop), two_devices.weights(here)
                ),
                "same_counts": loop.info()[1:4] == here.info()[1:4],
                "train_steps": loop.info().train_steps,
            }
    return found


def swept(name):
    """How far the runs of a sweep are from plain loops on the first device."""
    with int32_handles.recorded(on_the_host=True) as made, train.device_scope("CPU:1"):
        result = train.sweep(
            lambda seed: make_loop(name, "native", "CPU:1", False, seed),
            [0, 1],
            num_iterations=3,
            eval_interval=3,
            num_eval_episodes=2,
        )
    differences = [
        two_devices.difference(
            two_devices.weights(result.restore(seed)),
            two_devices.weights(
                two_devices.ran(make_loop(name, "native", "CPU:0", False, seed), 3)
            ),
        )
        for seed in (0, 1)
    ]
    return {"differences": differences, "int32": made}


if __name__ == "__main__":
    # LLVM's optimizations would take much of the time.
    os.environ["XLA_FLAGS"] = "--xla_backend_optimization_level=0"
    two_devices.make_devices(soft_placement=True)
    # "auto" would warn if it did not compile.
    warnings.simplefilter("error", RuntimeWarning)
    kind, name = sys.argv[1:]
    print(json.dumps(swept(name) if kind == "sweep" else results(kind, name)))
