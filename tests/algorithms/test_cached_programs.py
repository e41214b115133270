"""A run has the same weights bit for bit if its programs come from the cache."""

import json

import pytest

from tests import forks
from tests.algorithms.test_algorithm import MEMORY, OFFLINE, SMALL, TINY
from tfrl.algorithms import bandits, registry
from tfrl.compilation import program_store

SCRIPT = """
import hashlib, json, sys
import numpy as np
import tfrl
from tfrl.algorithms import registry

name, environment, settings = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])
if "device" in settings:  # A second CPU stands for a GPU.
    import tensorflow as tf
    parts = [tf.config.LogicalDeviceConfiguration()] * 2
    [cpu] = tf.config.list_physical_devices("CPU")
    tf.config.set_logical_device_configuration(cpu, parts)
if settings.pop("records", False):
    settings["data"] = sys.argv[4]
    sac = tfrl.SAC(environment, seed=1, jit_compile=False, num_eval_episodes=1)
    sac.record(sys.argv[4], num_episodes=2, seed=1, overwrite=True)
made = registry.find(name)(environment, **settings).learn(60, progress=False)
weights = [np.asarray(variable).tobytes() for variable in made.agent.variables()]
print(hashlib.sha256(b"".join(weights)).hexdigest(), len(weights))
"""
GOALS = {"dqn": "BitFlipping15-v0"}
RECURRENT = ("ppo", "r2d2", "sac", "td3")
ON_A_DEVICE = ("dqn", "ppo", "sac")


def cases():
    """Yields each row of README's table: name, environment and settings."""
    for name in registry.CLASSES:
        kind = registry.find(name)
        tiny = {key: x for key, x in TINY.items() if key in kind.setting_fields()}
        if name == "a2c":
            tiny["minibatch_size"] = 0
        if name in OFFLINE:
            tiny["records"] = True
        discrete = kind.actions not in ("continuous", "vector") and name not in OFFLINE
        environment = "CartPole-v1" if discrete else "Pendulum-v1"
        if issubclass(kind, bandits.Bandit):
            environment = kind.environment_name
        yield name, environment, tiny
        if name in GOALS:
            yield name, GOALS[name], tiny
        if name in RECURRENT:
            memory = dict(MEMORY)
            if name in ("sac", "td3"):  # Of 20 steps each run takes a minute.
                memory["lstm_sequence_length"] = 4
            yield name, environment, tiny | memory
        if name in ON_A_DEVICE:
            yield name, environment, tiny | {"device": "CPU:1"}


@pytest.fixture(scope="module")
def processes(tmp_path_factory):
    """Returns a function that runs a case with or without a cache, which it empties."""
    folder = tmp_path_factory.mktemp("cached")
    script = folder / "script.py"
    script.write_text(SCRIPT)
    servers = []
    for place in (str(folder / "cache"), "off"):
        (folder / place).mkdir(exist_ok=True)
        servers.append(forks.Forks(folder / place, TFRL_CACHE_DIR=place))
    root = folder / "cache" / "programs"

    def run(is_cached, name, environment, settings):
        number = program_store.usage(root).number
        ended = servers[0 if is_cached else 1].run(
            str(script), name, environment, json.dumps(settings), str(folder / "data")
        )
        assert ended.code == 0, ended.errors
        return ended.output, program_store.usage(root).number - number

    yield run
    for server in servers:
        server.close()


CASES = list(cases())


@pytest.mark.parametrize("jit_compile", [True, False], ids=["compiled", "plain"])
@pytest.mark.parametrize(
    "case", CASES, ids=[f"{name} {env} {len(s)}" for name, env, s in CASES]
)
@pytest.mark.slow
def test_the_weights_are_the_same_with_and_without_the_cache(
    processes, case, jit_compile
):
    name, environment, settings = case
    settings = {**settings, **SMALL, "jit_compile": jit_compile}
    if "jit_compile" not in registry.find(name).setting_fields():
        del settings["jit_compile"]
    arguments = name, environment, settings
    without, _ = processes(False, *arguments)
    missed, added = processes(True, *arguments)
    hit, added_again = processes(True, *arguments)
    assert missed == hit == without
    assert added_again == 0
    assert added > 0 or not jit_compile
