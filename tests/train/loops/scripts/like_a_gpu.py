"""Trains the agents of the examples as on a machine with a GPU; prints JSON.

The agents live on the second of two logical CPU devices. As TensorFlow does on a
machine with a GPU, variables of int32 are made on the first one, whatever the scope,
and an operation without a kernel for its device runs on the CPU. The first argument is
"gymnasium", "native" or "sweep", the second one the name of an agent.
"""

import ast
import functools
import json
import os
import re
import sys
import warnings
from unittest import mock

import gymnasium
import numpy as np
import tensorflow as tf

from tests import int32_handles
from tests.train import test_hindsight_training
from tests.train.loops.scripts import two_devices
from tfrl import environments, train
from tfrl.algorithms import offline, registry, worlds
from tfrl.environments import native, suites
from tfrl.specs import tensor_spec

# What follows `tfrl train` for each agent.
AGENTS = {
    # The commands of README's table.
    "dqn": "dqn",
    "ddqn": "ddqn",
    "c51": "c51",
    "qr_dqn": "qr_dqn",
    "iqn": "iqn",
    "rainbow": "rainbow",
    "r2d2": "r2d2",
    "dqn_hindsight": "dqn --env=BitFlipping15-v0",
    "reinforce": "reinforce",
    "ppo": "ppo",
    "ppo_recurrent": "ppo --lstm_size=64",
    "sac_recurrent": "sac --lstm_size=64",
    "td3_recurrent": "td3 --lstm_size=64",
    "rpo": "ppo --env=Pendulum-v1 --rpo_alpha=0.5",
    "ppo_rnd": "ppo --rnd_coefficient=1",
    "a2c": "a2c",
    "pqn": "pqn",
    "impala": "impala",
    "lin_ucb": "lin_ucb",
    "lin_ts": "lin_ts",
    "neural_epsilon_greedy": "neural_epsilon_greedy",
    "neural_lin_ucb": "neural_lin_ucb",
    "ddpg": "ddpg",
    "d4pg": "d4pg",
    "td3": "td3",
    "sac": "sac",
    "sac_simba": "sac --encoder=simba",
    "sac_bins": "sac --value_bins=101",
    "td3_bins": "td3 --value_bins=101",
    "redq": "redq",
    "droq": "droq",
    "tqc": "tqc",
    "tqc_hindsight": "tqc --env=FetchReach-v4",
    "crossq": "crossq",
    "discrete_sac": "discrete_sac",
    "mrq": "mrq",
    "mrq_discrete": "mrq --env=CartPole-v1",
    "dreamer": "dreamer",
    "dreamer_force": "dreamer --env=Pendulum-v1",
    "qt_opt": "qt_opt",
    "mpo": "mpo",
    "dmpo": "dmpo",
    "iql": "iql",
    "cql": "cql",
    "td3_bc": "td3_bc",
    "rebrac": "rebrac",
    "edac": "edac",
    "bc": "bc",
    "iql_online": "iql --online_share=0.5",
    # What its rows name beside these, and other kinds of replay.
    "munchausen": "iqn --munchausen=True --double_q=False --n_step_update=1",
    "sac_gsde": "sac --env=MountainCarContinuous-v0 --preset=sac_mountain_car_gsde",
    "normalized": "dqn --normalize_observations=True",
    "prioritized": "dqn --replay=prioritized",
    "sac_prioritized": "sac --replay=prioritized",
    "overlap": "dqn --overlap=True --collect_steps_per_iteration=2",
    "sac_overlap": "sac --overlap=True --replay=prioritized",
    "frame_stack": "dqn --frame_stack=3",
    "rainbow_frame_stack": "rainbow --frame_stack=3",
}
LAYERS = (
    "fc_layer_params",
    "actor_fc_layer_params",
    "critic_fc_layer_params",
)
TINY = {
    **dict.fromkeys(LAYERS, (8,)),
    "hidden_size": 8,
    "sequence_length": 8,
    "imagination_length": 3,
    "warm_up": 0,
    "num_envs": 2,
    "num_iterations": 100,
    "encoding_iterations": 2,
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
# The settings of `jit_compile`, and the iterations of each call of `run`.
MODES = (False, "auto", True)
CALLS = (1, 2)


class Pictures(gymnasium.Env):
    """Random pictures, in stacks whose frames the replay buffer stores once."""

    observation_space = gymnasium.spaces.Box(0, 255, (3, 2, 3), np.uint8)
    action_space = gymnasium.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self._stack = np.repeat(self._picture(), 3, axis=-1)
        return self._stack, {}

    def step(self, action):
        self._stack = np.concatenate([self._stack[..., 1:], self._picture()], axis=-1)
        return self._stack, float(action), False, False, {}

    def _picture(self):
        return self.np_random.integers(0, 256, (3, 2, 1), np.uint8)


def recipe(name, device, seed=0, environment=None):
    """The algorithm of an agent, with tiny sizes.

    Args:
      name: The agent.
      device: The device of the agent.
      seed: The seed.
      environment: The environment; None for the one of the command.
    """
    algorithm, *words = AGENTS[name].split()
    given = dict(word.removeprefix("--").split("=") for word in words)
    kind = registry.find(algorithm)
    env, preset = given.pop("env", kind.environment_name), given.pop("preset", "")
    values = {key: parsed(value) for key, value in given.items()}
    usual = kind(env, preset=preset, **values).settings
    tiny = dict(TINY)
    if algorithm == "redq":
        tiny["num_critics"] = 3
    if usual.get("trace_length"):
        tiny |= {"burn_in_length": 2, "trace_length": 4}
    if usual.get("lstm_size"):
        tiny["lstm_size"] = 5
    if usual.get("lstm_sequence_length"):
        tiny["lstm_sequence_length"] = 4
    if "minibatch_size" in usual:
        tiny |= {"collect_steps_per_iteration": 8, "minibatch_size": 8}
    if name == "a2c":
        tiny["minibatch_size"] = 0
    if name == "sac_gsde":
        tiny |= {"collect_steps_per_iteration": 2, "train_steps_per_iteration": 2}
    if usual.get("frame_stack"):
        env = "Pictures-v0"
    small = {key: value for key, value in tiny.items() if key in usual}
    settings = {**usual, **small, "device": device, "seed": seed}
    return kind(environment or env, settings=settings, environment_name=env)


def parsed(text):
    """The value that a flag's text stands for."""
    try:
        return ast.literal_eval(text)
    except ValueError:
        return text


def make_environment(made, kind):
    """The environment of an algorithm.

    Args:
      made: The algorithm.
      kind: "native" for a native environment, else its own.
    """
    if kind == "native":
        num_envs = made.settings.get("num_envs", 1)
        dynamics = suites.find_dynamics(made.world.name)
        with train.device_scope(made.device):
            return native.NativeEnvironment(dynamics, num_envs, made.seed)
    if made.world.name.startswith("Fetch"):
        # The extra `robotics` is not among those of the tests.
        return environments.TFPyEnvironment(test_hindsight_training.Reach())
    made.world.fit = worlds.ActionFit("any", "")
    return made.world.make_training()


def make_loop(name, kind, device, jit_compile, seed=0):
    """The example's loop of an agent.

    Args:
      name: The agent.
      kind: See `make_environment`.
      device: The device of the agent.
      jit_compile: The loop's argument.
      seed: The seed.
    """
    environment = make_environment(recipe(name, device, seed), kind)
    algorithm = recipe(name, device, seed, environment)
    patches = [
        mock.patch.object(train, kind.__name__, given(kind, jit_compile))
        for kind in (
            train.EpisodicLoop,
            train.OfflineLoop,
            train.OffPolicyLoop,
            train.OnPolicyLoop,
        )
    ]
    if algorithm.is_offline:
        patches += [
            mock.patch.object(offline.Offline, "_load", random_frames),
            mock.patch.object(offline, "find_files", lambda path: [path]),
        ]
    if kind == "native":
        # The example's environment fills its buffer on the CPU.
        there = functools.partial(at, train.device_scope, device)
        patches.append(mock.patch.object(train, "device_scope", there))
    for patch in patches:
        patch.start()
    try:
        return algorithm.build()
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


def random_frames(algorithm, spec):
    """Frames in place of recorded ones, without the ends of episodes."""
    del algorithm
    small = tf.nest.map_structure(
        lambda leaf: tensor_spec.BoundedTensorSpec(leaf.shape, leaf.dtype, -1, 1), spec
    )
    frames = tensor_spec.sample_spec_nest(small, tf.constant([0, 1]), (50,))
    middle = tf.ones([50], tf.int32)
    return tf.data.Dataset.from_tensor_slices(
        frames._replace(step_type=middle, next_step_type=middle, discount=tf.ones([50]))
    )


def weights(loop):
    """The weights, without LaProp's means of gradients divided by their sizes.

    Rounding errors decide the signs of those near 0.
    """
    return [
        variable.numpy()
        for variable in loop.agent.variables()
        if not re.match(r"laprop/.*_mean:0", variable.name)
    ]


def results(kind, name):
    """What comes of an agent on the second device, for each setting."""
    here = two_devices.ran(make_loop(name, kind, "CPU:0", False), *CALLS)
    found = {}
    for mode in MODES:
        with int32_handles.recorded(on_the_host=True) as made:
            try:
                loop = make_loop(name, kind, "CPU:1", mode)
            except (RuntimeWarning, ValueError) as error:
                found[str(mode)] = {"refused": str(error)}
                continue
            two_devices.ran(loop, *CALLS)
        found[str(mode)] = {
            "compiled": loop._jit_compile,
            "devices": two_devices.devices(loop.agent.variables()),
            "int32": made,
            "difference": two_devices.difference(weights(loop), weights(here)),
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
    # Not where a test imports this file: the registry goes to all child processes.
    gymnasium.register("Pictures-v0", Pictures, max_episode_steps=7)
    # "auto" would warn if it did not compile.
    warnings.simplefilter("error", RuntimeWarning)
    kind, name = sys.argv[1:]
    print(json.dumps(swept(name) if kind == "sweep" else results(kind, name)))
