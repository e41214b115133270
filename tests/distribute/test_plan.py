"""The parts of a run, and checks of its numbers."""

import dataclasses

import pytest

from tfrl import distribute, train
from tfrl.distribute import plan as plans

EXPERIMENT = distribute.Experiment(
    make_environment=None,
    make_agent=None,
    make_table=None,
    sequence_length=2,
    stride_length=1,
    batch_size=4,
)


def make_plan(tmp_path, **changes):
    plan = plans.Plan(EXPERIMENT, train.RunDirectory(tmp_path, {}), 2, 10)
    return dataclasses.replace(plan, **changes)


def test_the_learner_starts_after_the_server_and_the_actors(tmp_path):
    assert [task.title for task in make_plan(tmp_path).tasks] == [
        "the replay server",
        "actor 0",
        "actor 1",
        "the learner",
    ]


@pytest.mark.parametrize("name", ["num_actors", "num_iterations"])
def test_numbers_of_a_plan_must_be_positive(tmp_path, name):
    with pytest.raises(ValueError, match=f"{name}: expected an integer of at least 1"):
        make_plan(tmp_path, **{name: 0})


@pytest.mark.parametrize(
    "name",
    ["sequence_length", "stride_length", "batch_size", "push_period", "pull_period"],
)
def test_numbers_of_an_experiment_must_be_positive(tmp_path, name):
    experiment = dataclasses.replace(EXPERIMENT, **{name: 0})
    with pytest.raises(ValueError, match=f"{name}: expected an integer of at least 1"):
        make_plan(tmp_path, experiment=experiment)
