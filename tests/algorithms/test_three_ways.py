"""Each algorithm by its class, the command and its script: the same weights."""

import json

import numpy as np
import pytest
import tensorflow as tf

import tfrl
from tests.algorithms.test_algorithm import TINY
from tfrl.algorithms import registry

# The script of each algorithm, if it is not named after it, and the algorithm's name
# there. Scripts take the settings of an algorithm that it is a kind of.
SCRIPTS = {
    "ddqn": ("train_dqn", "dqn"),
    "c51": ("train_dqn", "c51"),
    "qr_dqn": ("train_dqn", "qr_dqn"),
    "iqn": ("train_dqn", "iqn"),
    "rainbow": ("train_dqn", "rainbow"),
    "r2d2": ("train_dqn", "r2d2"),
    "a2c": ("train_ppo", "a2c"),
    "ddpg": ("train_td3", "ddpg"),
    "redq": ("train_sac", "sac"),
    "tqc": ("train_sac", "tqc"),
    "discrete_sac": ("train_sac", "discrete_sac"),
    "mpo": ("train_dmpo", "mpo"),
    "iql": ("train_offline", "iql"),
    "cql": ("train_offline", "cql"),
    "bc": ("train_offline", "bc"),
}
COMMON = {
    "seed": 3,
    "jit_compile": False,
    "num_iterations": 3,
    "num_eval_episodes": 1,
    "eval_interval": 2,
}
CLASS = """
import json, sys
from tfrl.command import threads
threads.set_up()
import tfrl
name, environment, logdir, settings, steps = sys.argv[1:]
algorithm = getattr(tfrl, name)(environment, logdir=logdir, **json.loads(settings))
algorithm.learn(json.loads(steps), progress=False)
"""
# Of some algorithms; the others have their number of iterations.
STEPS = {"ppo": 60, "sac": 60}
COMMAND = "from tfrl.command import main; main.main()"


@pytest.fixture(scope="module")
def recording(tmp_path_factory):
    """Frames of a random policy on Pendulum-v1."""
    path = tmp_path_factory.mktemp("recording") / "random.tfrecord"
    sac = tfrl.SAC("Pendulum-v1", seed=0, num_envs=1, replay_capacity=100)
    sac.record(path, num_episodes=1, greedy=False)
    return path


def settings_of(name, recording):
    kind = registry.find(name)
    fields = kind.Settings.texts()
    settings = {**COMMON, **{key: x for key, x in TINY.items() if key in fields}}
    if name in ("ppo", "a2c"):
        del settings["lstm_size"]
    if name == "a2c":
        settings["minibatch_size"] = 0
    if name == "redq":
        settings["train_steps_per_iteration"] = 2
    if kind.is_offline:
        settings["data"] = str(recording)
    return settings


def weights(folder):
    """Returns the agent's variables in the last checkpoint of a run, by their keys."""
    reader = tf.train.load_checkpoint(str(folder / "checkpoints"))
    return {
        key: reader.get_tensor(key)
        for key in reader.get_variable_to_shape_map()
        if key.startswith("agent/")
    }


@pytest.mark.slow
@pytest.mark.parametrize("name", registry.CLASSES)
def test_class_command_and_script_train_alike(name, forks, recording, tmp_path):
    kind = registry.find(name)
    settings = settings_of(name, recording)
    script, agent = SCRIPTS.get(name, (f"train_{name}", name))
    by_class, command = tmp_path / "class.py", tmp_path / "command.py"
    by_class.write_text(CLASS)
    command.write_text(COMMAND)

    def flags(values, logdir):
        words = [f"--config.{key}={value}" for key, value in values.items()]
        fixed = ["--nofilm", "--quiet", f"--env={kind.environment_name}"]
        if name in STEPS:
            fixed.append(f"--num_environment_steps={STEPS[name]}")
        return [*words, *fixed, f"--logdir={tmp_path / logdir}"]

    class_words = (
        str(by_class),
        kind.__name__,
        kind.environment_name,
        str(tmp_path / "class"),
    )
    script_settings = {"agent": agent, **kind.overrides, **settings}
    for words in (
        (*class_words, json.dumps(settings), json.dumps(STEPS.get(name))),
        (str(command), "train", name, *flags(settings, "command")),
        (script, *flags(script_settings, "script")),
    ):
        ended = forks.run(*words)
        assert ended.code == 0, ended.errors
    expected = weights(tmp_path / "class")
    assert len(expected) > 3
    for folder in ("command", "script"):
        found = weights(tmp_path / folder)
        assert found.keys() == expected.keys()
        for key, value in expected.items():
            np.testing.assert_array_equal(found[key], value, err_msg=key)
    if name == "ppo":
        one, other = (tfrl.load(tmp_path / folder) for folder in ("class", "command"))
        for a, b in zip(one.agent.variables(), other.agent.variables(), strict=True):
            np.testing.assert_array_equal(a.numpy(), b.numpy())
