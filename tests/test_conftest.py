"""The settings that hold for every test."""

import pathlib
import random
import subprocess
import sys

import numpy as np
import pytest
import tensorflow as tf

from tfrl.environments import suite_gym
from tfrl.networks import q_network
from tfrl.specs import tensor_spec

REPOSITORY = pathlib.Path(__file__).resolve().parents[1]

SHOW = "signal.getsignal(signal.SIGINT) is signal.default_int_handler"
# A shell in the background starts the tests with SIGINT ignored.
TESTS = f"""
import signal, subprocess, sys
signal.signal(signal.SIGINT, signal.SIG_IGN)
import tests.conftest
print({SHOW}, flush=True)
subprocess.run([sys.executable, "-c", "import signal; print({SHOW})"], check=True)
"""


def test_sigint_reaches_the_tests_and_their_children_though_it_was_ignored():
    result = subprocess.run(
        [sys.executable, "-c", TESTS],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=True,
    )
    assert result.stdout.split() == ["True", "True"]


DRAWN = []


@pytest.mark.parametrize("repeat", range(2))
def test_what_has_no_seed_draws_the_same_numbers_in_each_test(repeat):
    network = q_network.QNetwork(
        tf.TensorSpec([2], tf.float32),
        tensor_spec.BoundedTensorSpec([], tf.int32, 0, 1),
        fc_layer_params=(3,),
    )
    network.create_variables()
    numbers = [random.random(), np.random.uniform(), *network.variables[0].numpy()[0]]
    numbers += [np.random.default_rng().random() for _ in range(2)]
    environment = suite_gym.load("CartPole-v1")
    numbers += environment.reset().observation.tolist()
    assert len(set(numbers)) == len(numbers)
    DRAWN.append(numbers)
    assert DRAWN[repeat] == DRAWN[0]
