"""Trains whole runs of every kind of loop, and prints the results as JSON.

The agents are on CPU:1, a second logical device, or on CPU:0 for comparison. The
logical devices and the determinism of a process cannot be changed later, so this is a
script. Its arguments are "devices" or "deterministic", and the names of loops.

A run is stopped in the middle by a callback, and resumed with new objects.
"""

import functools
import json
import pathlib
import sys
import tempfile

import numpy as np
import tensorflow as tf

from tests.agents import every_agent
from tfrl import train
from tfrl.environments import native, suite_gym, tf_py_environment
from tfrl.eval import evaluate
from tfrl.replay_buffers import TFPrioritizedReplayBuffer, TFUniformReplayBuffer
from tfrl.train.runs import run_directory

HALF, WHOLE = 4, 8


def gymnasium(name):
    environment = suite_gym.load(name, max_episode_steps=12)
    environment.seed(3)
    return tf_py_environment.TFPyEnvironment(environment)


def make_agent(kind, environment, device):
    specs = environment.time_step_spec(), environment.action_spec()
    with train.device_scope(device):
        return every_agent.KINDS[kind].make(*specs)


def make_buffer(agent, device, kind=TFUniformReplayBuffer, batch_size=1):
    with train.device_scope(device):
        return kind(agent.collect_data_spec, batch_size, max_length=300, seed=4)


def off_policy(
    device,
    kind="DqnAgent",
    name="CartPole-v1",
    buffer=TFUniformReplayBuffer,
    buffer_device=None,
    environment=None,
    **kwargs,
):
    environment = environment or gymnasium(name)
    agent = make_agent(kind, environment, device)
    return train.OffPolicyLoop(
        environment,
        agent,
        make_buffer(agent, buffer_device or device, buffer, environment.batch_size),
        initial_collect_steps=20,
        sample_batch_size=8,
        seed=0,
        **kwargs,
    )


def on_native(device):
    with train.device_scope(device):
        environment = native.load("CartPole-v1", batch_size=4, seed=3)
    return off_policy(device, environment=environment, jit_compile=True)


def on_policy(device, kind="PPOClipAgent", **kwargs):
    environment = gymnasium("CartPole-v1")
    agent = make_agent(kind, environment, device)
    return train.OnPolicyLoop(
        environment, agent, collect_steps_per_iteration=8, seed=0, **kwargs
    )


def episodic(device, **kwargs):
    environment = gymnasium("CartPole-v1")
    agent = make_agent("ReinforceAgent", environment, device)
    buffer = make_buffer(agent, "CPU:0")
    return train.EpisodicLoop(
        environment, agent, buffer, collect_episodes_per_iteration=2, seed=0, **kwargs
    )


def filled(agent, device):
    """A buffer of random frames of Pendulum."""
    buffer = make_buffer(agent, device)
    rng = np.random.default_rng(0)

    def draw(spec):
        if spec.dtype.is_integer:
            return np.ones([1, *spec.shape], spec.dtype.as_numpy_dtype)
        return rng.uniform(0, 1, [1, *spec.shape]).astype(np.float32)

    for _ in range(40):
        buffer.add_batch(tf.nest.map_structure(draw, agent.collect_data_spec))
    return buffer


def offline(device, **kwargs):
    agent = make_agent("IqlAgent", gymnasium("Pendulum-v1"), device)
    return train.OfflineLoop(
        agent, filled(agent, device), sample_batch_size=8, seed=0, **kwargs
    )


def dataset(device):
    agent = make_agent("SacAgent", gymnasium("Pendulum-v1"), device)
    # A pipeline of tf.data reads variables of the host alone.
    buffer = filled(agent, "CPU:0")
    return train.DatasetLoop(agent, lambda: buffer.as_dataset(8, num_steps=2))


LOOPS = {
    "off-policy": functools.partial(off_policy, sampling="variables"),
    "off-policy, compiled": functools.partial(off_policy, jit_compile=True),
    "off-policy, continuous": functools.partial(
        off_policy, kind="SacAgent", name="Pendulum-v1", sampling="variables"
    ),
    "off-policy, prioritized": functools.partial(
        off_policy, buffer=TFPrioritizedReplayBuffer, sampling="variables"
    ),
    "off-policy, pipeline": functools.partial(
        off_policy, buffer_device="CPU:0", sampling="dataset"
    ),
    "off-policy, native": on_native,
    "on-policy": functools.partial(on_policy, num_epochs=2, minibatch_size=4),
    "on-policy, compiled": functools.partial(
        on_policy, num_epochs=2, minibatch_size=4, jit_compile=True
    ),
    "on-policy, recurrent": functools.partial(on_policy, kind="ImpalaAgent-recurrent"),
    "episodic": episodic,
    "episodic, compiled": functools.partial(episodic, jit_compile=True),
    "offline": offline,
    "offline, compiled": functools.partial(offline, jit_compile=True),
    "dataset": dataset,
}


class Diary(train.Callback):
    """Writes down what a run says, and stops it at an iteration."""

    interval = 2

    def __init__(self, last):
        self.seen, self._last = [], last

    def on_interval(self, iteration):
        self.seen.append(iteration)
        if iteration == self._last:
            self.stop("it is the middle")

    def on_evaluation(self, result):
        self.seen.append(float(result.mean))

    def on_checkpoint(self, path):
        self.seen.append("checkpoint")


def observations(agent):
    spec = agent.time_step_spec
    return tf.nest.map_structure(lambda s: tf.ones([2, *s.shape], s.dtype), spec)


def trained(make, devices, folder):
    """Trains half of a run on each of the devices.

    Returns the weights, how far they moved, what the callbacks saw, and the actions of
    the agent's policy and of the saved one.
    """
    seen, first = [], None
    for device, last in zip(devices, (HALF, WHOLE), strict=True):
        tf.random.set_seed(5)
        loop = make(device)
        before = weights(loop)
        name = (
            "Pendulum-v1" if loop.agent.action_spec.dtype.is_floating else "CartPole-v1"
        )
        evaluator = evaluate.Evaluator(gymnasium(name), loop.agent.policy, 2, seed=1)
        diary = Diary(last)
        run = train.Run(
            loop,
            run_directory.RunDirectory(folder, {"num_iterations": WHOLE}),
            num_iterations=WHOLE,
            evaluate=lambda _, run=evaluator.run: run(),
            eval_interval=HALF,
            log_interval=HALF,
            checkpoint_interval=HALF,
            callbacks=[diary],
            continue_stopped=True,
        )
        run.run()
        seen += diary.seen
        first = first or before
    policy = loop.agent.policy
    loaded = tf.saved_model.load(str(pathlib.Path(folder, "final_policy")))
    time_step = observations(loop.agent)
    actions = [
        each.action(time_step, each.get_initial_state(2)).action.numpy().tolist()
        for each in (policy, loaded)
    ]
    last = weights(loop)
    return last, difference(first, last), seen, actions


def weights(loop):
    """The values of the agent's variables, but of its counters and seeds."""
    variables = loop.agent.variables()
    return [v.numpy() for v in variables if v.dtype.is_floating]


def difference(ours, theirs):
    pairs = zip(ours, theirs, strict=True)
    return max(float(np.max(np.abs(a - b))) for a, b in pairs)


def compared(make, places):
    """Compares a run whose halves are on two devices with one that is on the host."""
    results = []
    for devices in (("CPU:0", "CPU:0"), places):
        with tempfile.TemporaryDirectory() as folder:
            results.append(trained(make, devices, folder))
    ended, moved, seen, actions = zip(*results, strict=True)
    return {
        "difference": difference(*ended),
        "moved": moved[0],
        "seen": seen,
        "actions": actions,
    }


def main(what, *names):
    (cpu,) = tf.config.list_physical_devices("CPU")
    one = tf.config.LogicalDeviceConfiguration()
    tf.config.set_logical_device_configuration(cpu, [one, one])
    if what == "deterministic":
        tf.config.experimental.enable_op_determinism()
        places = ("CPU:1", "CPU:1")
    else:
        tf.config.set_soft_device_placement(False)
        # A run may resume on another device.
        places = ("CPU:0", "CPU:1")
    print(json.dumps({name: compared(LOOPS[name], places) for name in names}))


if __name__ == "__main__":
    main(*sys.argv[1:])
