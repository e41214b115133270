import sys
import types

import dm_env
import numpy as np
import pytest
from dm_env import specs

from tfrl.environments import suite_bsuite, suites, utils


class Catch(dm_env.Environment):
    """Like bsuite's: float observations, int actions, Python floats as rewards."""

    def __init__(self):
        self.count = 0

    def reset(self):
        self.count = 0
        return dm_env.restart(np.zeros((10, 5), np.float32))

    def step(self, action):
        self.count += 1
        if self.count == 9:
            return dm_env.termination(1.0, np.ones((10, 5), np.float32))
        return dm_env.transition(0.0, np.zeros((10, 5), np.float32))

    def observation_spec(self):
        return specs.BoundedArray((10, 5), np.float32, 0, 1, "board")

    def action_spec(self):
        return specs.DiscreteArray(3, np.int64, "action")


@pytest.fixture
def recorded(monkeypatch):
    """A stand-in for bsuite, which needs plotting; keeps the arguments of recording.

    It has the functions of bsuite 0.3.6 that the suite calls.
    """
    calls = []

    def load_and_record(bsuite_id, save_path, logging_mode="csv", overwrite=False):
        calls.append((bsuite_id, save_path, logging_mode, overwrite))
        return Catch()

    package = types.ModuleType("bsuite")
    package.__spec__ = types.SimpleNamespace(name="bsuite")
    package.bsuite = types.SimpleNamespace(
        load_from_id=lambda bsuite_id: Catch(), load_and_record=load_and_record
    )
    ids = ("catch/0", "catch/1", "deep_sea/7")
    package.sweep = types.SimpleNamespace(SWEEP=ids, SETTINGS={key: {} for key in ids})
    monkeypatch.setitem(sys.modules, "bsuite", package)
    return calls


def test_loads_without_recording(recorded):
    environment = suite_bsuite.load("catch/0", record=False)
    assert recorded == []
    assert environment.observation_spec().shape == (10, 5)
    assert environment.action_spec().num_values == 3
    utils.validate_py_environment(environment, episodes=2)


def test_is_available(recorded):
    assert suite_bsuite.is_available()


def test_ends_are_terminations(recorded):
    environment = suite_bsuite.load("catch/0", record=False)
    environment.reset()
    steps = [environment.step(np.array(0)) for _ in range(10)]
    assert [int(step.step_type) for step in steps] == [1] * 8 + [2, 0]
    assert (steps[8].reward, steps[8].discount) == (1, 0)
    assert steps[8].reward.dtype == np.float32


def test_records_to_a_folder_or_the_terminal(recorded, tmp_path):
    suite_bsuite.load("deep_sea/7", save_path=str(tmp_path), overwrite=True)
    suite_bsuite.load("catch/1", logging_mode="terminal")
    assert recorded == [
        ("deep_sea/7", str(tmp_path), "csv", True),
        ("catch/1", "", "terminal", False),
    ]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"bsuite_id": "cach/0"}, r"bsuite_id: got 'cach/0'.*did you mean catch/0"),
        ({"bsuite_id": "catch/0"}, r"save_path: got None, expected a folder.*record=F"),
        (
            {"bsuite_id": "catch/0", "logging_mode": "sqlite"},
            "logging_mode: got 'sqlite', expected 'csv' or 'terminal'",
        ),
    ],
)
def test_what_cannot_be_loaded_is_an_error(recorded, arguments, message):
    with pytest.raises(ValueError, match=message):
        suite_bsuite.load(**arguments)


def test_a_name_of_an_experiment_is_an_environment(recorded):
    made = suites.load("bsuite/catch/0", 2)
    assert made.batch_size == 2
    assert made.reset().observation.shape == (2, 10, 5)
    assert recorded == []
    with pytest.raises(ValueError, match="did you mean catch/1"):
        suites.find_action_space("bsuite/catch/11")
