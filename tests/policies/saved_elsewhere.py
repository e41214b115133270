"""Runs saved policies without tfrl: by TensorFlow alone, and by TensorFlow Lite."""

import subprocess
import sys
import warnings

import numpy as np
import tensorflow as tf

# Runs in a process of its own, where only TensorFlow may be imported.
_TENSORFLOW_ALONE = """
import collections, sys
import numpy as np
import tensorflow as tf

TimeStep = collections.namedtuple("TimeStep", "step_type reward discount observation")
inputs = dict(np.load("inputs.npz"))
seed = tf.constant(inputs.pop("seed"))
observation = {name: tf.constant(array) for name, array in inputs.items()}
num = len(next(iter(inputs.values())))
time_step = TimeStep(
    tf.ones([num], tf.int32), tf.zeros([num]), tf.ones([num]), observation
)
actions = []
for path in sys.argv[1:]:
    loaded = tf.saved_model.load(path)
    state = loaded.get_initial_state(num)
    actions.append(loaded.action(time_step, state, seed).action.numpy())
    assert callable(loaded.distribution)
assert "tfrl" not in sys.modules
assert "tensorflow_probability" not in sys.modules
np.savez("actions.npz", *actions)
"""


def act_by_tensorflow_alone(paths, observation, seed, folder):
    """Returns the actions of saved policies in a process that never imports tfrl.

    Args:
      paths: The directories of the policies, whose specs are the same.
      observation: A dict of arrays `[B, ...]`.
      seed: An int64 array `[2]`, the seed of each policy's action.
      folder: An empty directory, where not even the sources are found by chance.
    """
    np.savez(folder / "inputs.npz", seed=seed, **observation)
    subprocess.run(
        [sys.executable, "-c", _TENSORFLOW_ALONE, *map(str, paths)],
        check=True,
        cwd=folder,
    )
    return list(np.load(folder / "actions.npz").values())


def tflite_runner(model):
    """Returns an interpreter, which has to be kept, and a callable that runs it."""
    with warnings.catch_warnings():
        # It announces that it will move to another package.
        warnings.simplefilter("ignore", UserWarning)
        interpreter = tf.lite.Interpreter(model_content=model)
    # The runner reads the interpreter's memory without keeping it.
    return interpreter, interpreter.get_signature_runner()


def tflite_inputs(observation):
    """Returns the runner's inputs for an array of observations, or a dict of arrays."""
    leaves = {"": observation}
    if isinstance(observation, dict):
        leaves = {f"/{name}": array for name, array in observation.items()}
    num = len(next(iter(leaves.values())))
    return {
        "0/step_type": np.ones(num, np.int32),
        "0/reward": np.zeros(num, np.float32),
        "0/discount": np.ones(num, np.float32),
        **{f"0/observation{name}": array for name, array in leaves.items()},
    }
