"""Each algorithm that the command trains, in mixed precision and in float32."""

import csv
import math

import h5py
import numpy as np
import pytest
import tensorflow as tf

from tests import processors

pytestmark = pytest.mark.slow
FEW = (
    "--num_iterations=2",
    "--eval_interval=2",
    "--log_interval=2",
    "--num_eval_episodes=1",
)
OFF_POLICY = (*FEW, "--initial_collect_steps=100")
ON_POLICY = (*FEW, "--num_envs=2")
PPO = (
    *ON_POLICY,
    "--collect_steps_per_iteration=8",
    "--num_epochs=2",
    "--minibatch_size=8",
)
PLAIN = "--jit_compile=False"
EXAMPLES = {
    "ppo": ("train ppo", PLAIN, *PPO),
    "ppo, compiled": ("train ppo", *PPO),
    "ppo, continuous": ("train ppo", "--env=Pendulum-v1", PLAIN, *PPO),
    "a2c": ("train a2c", PLAIN, *ON_POLICY),
    "impala": ("train impala", PLAIN, *ON_POLICY),
    "pqn": ("train pqn", PLAIN, *PPO),
    "reinforce": ("train reinforce", "--use_baseline", PLAIN, *FEW),
    "dqn": ("train ddqn", PLAIN, *OFF_POLICY),
    "sac": ("train sac", PLAIN, *OFF_POLICY),
    "sac, compiled": ("train sac", *OFF_POLICY),
    "tqc": ("train tqc", PLAIN, *OFF_POLICY),
    "discrete_sac": (
        "train discrete_sac",
        PLAIN,
        *OFF_POLICY,
    ),
    "td3": ("train td3", PLAIN, *OFF_POLICY),
    "ddpg": ("train ddpg", PLAIN, *OFF_POLICY),
    "d4pg": ("train d4pg", PLAIN, *OFF_POLICY),
    "d4pg, compiled": ("train d4pg", *OFF_POLICY),
    "dmpo": ("train dmpo", PLAIN, *OFF_POLICY),
    "mpo": ("train mpo", PLAIN, *OFF_POLICY),
    "iql": ("train iql", PLAIN, *FEW),
    "cql": ("train cql", PLAIN, *FEW),
    "bc": ("train bc", PLAIN, *FEW),
}


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """An episode of Minari's, of observations and actions of Pendulum-v1."""
    path = tmp_path_factory.mktemp("data") / "main_data.hdf5"
    random = np.random.default_rng(0)
    with h5py.File(path, "w") as file:
        for name, shape in (
            ("observations", (31, 3)),
            ("actions", (30, 1)),
            ("rewards", (30,)),
        ):
            values = random.uniform(-1, 1, shape).astype(np.float32)
            file[f"episode_0/{name}"] = values
        file["episode_0/terminations"] = np.zeros(30, bool)
    return f"--data={path}"


@pytest.fixture
def trained(run, tmp_path, data):
    """Trains in some precision; returns the loss, and all variables by name."""

    def train(module, *arguments, dtype):
        if module in ("train iql", "train cql", "train bc"):
            arguments = (*arguments, data)
        logdir = tmp_path / dtype
        flags = (f"--logdir={logdir}", f"--dtype={dtype}")
        code, _, errors = run(module, *arguments, *flags)
        assert code == 0, errors
        with open(logdir / "metrics.csv", newline="") as file:
            *_, last = csv.DictReader(file)
        path = tf.train.latest_checkpoint(logdir / "checkpoints")
        saved = tf.train.load_checkpoint(path)
        names = saved.get_variable_to_shape_map()
        return float(last["loss"]), {name: saved.get_tensor(name) for name in names}

    return train


def dtypes(variables):
    return {name: np.asarray(value).dtype.name for name, value in variables.items()}


def momenta(variables):
    """The optimizers' moving averages of the gradients of all kernels trained."""
    return {
        name: value
        for name, value in variables.items()
        if "ptimizer" in name and np.ndim(value) > 1 and np.any(value)
    }


@processors.multiplies_in_half_precision
def test_variables_stay_in_float32(trained):
    loss, variables = trained(*EXAMPLES["ppo"], dtype="mixed_bfloat16")
    assert math.isfinite(loss)
    assert momenta(variables)
    assert not {"bfloat16", "float16"} & {*dtypes(variables).values()}


@processors.multiplies_in_half_precision
@pytest.mark.parametrize("name", EXAMPLES)
def test_losses_are_near_those_in_float32(trained, name):
    loss, variables = trained(*EXAMPLES[name], dtype="mixed_bfloat16")
    expected, wide = trained(*EXAMPLES[name], dtype="float32")
    # bfloat16 has a precision of 2^-8, about 0.4 %.
    assert loss == pytest.approx(expected, rel=4e-3)
    assert dtypes(variables) == dtypes(wide)
    # All networks compute in it: no gradient is the same.
    ours, theirs = momenta(variables), momenta(wide)
    assert ours.keys() == theirs.keys()
    assert ours
    same = [name for name in ours if np.array_equal(ours[name], theirs[name])]
    assert not same
