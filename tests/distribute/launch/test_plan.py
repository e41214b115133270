"""The parts of a run, and checks of its numbers."""

import dataclasses
import pickle

import cloudpickle
import pytest

from tests.distribute.small_impala import IMPALA
from tfrl import distribute, replay_service, train
from tfrl.distribute.launch.plan import Plan, draw_token
from tfrl.replay_service.transport import connection

EXPERIMENT = distribute.Experiment(
    make_environment=None,
    make_agent=None,
    make_table=None,
    sequence_length=2,
    stride_length=1,
    batch_size=4,
)


def make_plan(tmp_path, **changes):
    plan = Plan(EXPERIMENT, train.RunDirectory(tmp_path, {}), 2, 10)
    return dataclasses.replace(plan, **changes)


def test_the_learner_starts_after_the_server_and_the_actors(tmp_path):
    assert [task.title for task in make_plan(tmp_path).tasks] == [
        "the replay server",
        "actor 0",
        "actor 1",
        "the learner",
    ]


def test_a_plan_has_a_server_and_a_directory_for_each_shard(tmp_path):
    plan = make_plan(tmp_path, experiment=IMPALA, num_shards=2)
    assert [task.title for task in plan.tasks][:3] == [
        "the replay server",
        "replay server 1",
        "actor 0",
    ]
    root = tmp_path / "replay_server"
    assert plan.server_directories == [root / "shard_0", root / "shard_1"]
    # The only server has the place that it has always had.
    assert make_plan(tmp_path).server_directories == [root]
    settings = plan.shared_settings
    assert settings["server_directories"] == [str(root / f"shard_{m}") for m in (0, 1)]
    sizes = [
        [(table["name"], table["max_size"]) for table in shard]
        for shard in settings["tables"]
    ]
    assert sizes == [
        [
            ("experience", 4),
            ("variables", 1),
            ("reports", 1000),
            ("evaluations", 1),
            ("evaluation_results", 100),
        ],
        [("experience", 4)],
    ]


def test_a_plan_may_have_an_evaluator(tmp_path):
    plan = make_plan(tmp_path, experiment=IMPALA, has_evaluator=True)
    assert [task.title for task in plan.tasks][-2:] == ["the evaluator", "the learner"]
    assert plan.shared_settings["has_evaluator"]


def test_shards_that_cannot_be_used_are_refused(tmp_path):
    with pytest.raises(ValueError, match="num_shards: got 3 with 2 actors"):
        make_plan(tmp_path, num_shards=3)
    with pytest.raises(ValueError, match="got 9 for a table of max_size 8"):
        make_plan(tmp_path, experiment=IMPALA, num_actors=9, num_shards=9)


def test_each_learner_has_a_part_of_a_batch_and_the_chief_is_the_last(tmp_path):
    plan = make_plan(tmp_path, num_learners=2)
    titles = [task.title for task in plan.tasks]
    assert titles[-2:] == ["learner 1", "the learner"]
    with pytest.raises(ValueError, match="num_learners: got 3 for a batch_size of 4"):
        make_plan(tmp_path, num_learners=3)


@pytest.mark.parametrize(
    "name", ["num_actors", "num_iterations", "num_shards", "num_learners"]
)
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


def test_a_schedule_is_free_or_lockstep(tmp_path):
    assert not make_plan(tmp_path).is_lockstep
    assert make_plan(tmp_path, schedule="lockstep").is_lockstep
    with pytest.raises(ValueError, match="schedule: got 'firm', expected one of"):
        make_plan(tmp_path, schedule="firm")


def test_a_plan_goes_to_a_process_without_the_tables_of_its_servers(tmp_path):
    plan = make_plan(tmp_path, experiment=IMPALA)
    server = replay_service.Server(plan.tables[0])  # Its tables refer to it.
    sent = pickle.loads(cloudpickle.dumps(plan))
    server.stop()
    assert sent.tasks == plan.tasks
    assert sent.directory.path == plan.directory.path
    assert "tables" not in vars(sent)


def test_a_token_of_the_environment_is_that_of_the_run(monkeypatch):
    monkeypatch.setenv(connection.TOKEN_VARIABLE, "given")
    assert draw_token() == "given"
