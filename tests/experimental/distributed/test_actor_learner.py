"""The earlier names of what `tfrl.distribute` does."""

from tfrl import distribute
from tfrl.distribute.roles import actor, learner, reports, run_tables
from tfrl.experimental import distributed
from tfrl.experimental.distributed import actor_learner


def test_the_earlier_names_are_the_same_objects():
    assert actor_learner.run is distribute.run_distributed
    assert actor_learner.Experiment is distribute.Experiment
    assert actor_learner.act is actor.act
    assert actor_learner.learn is learner.learn
    assert actor_learner.make_tables is run_tables.make_tables
    assert distributed.Experiment is distribute.Experiment
    assert distributed.ReverbVariableContainer is distribute.ReverbVariableContainer
    assert distributed.reports.Collected is reports.Collected
