"""A run whose evaluations go on elsewhere, and end when the test says so."""

import contextlib
import dataclasses

import pytest
import tensorflow as tf

from tests.train import countdown_runs
from tfrl import train

# By iteration, the mean return and the iteration from which on it is known.
RESULTS = {0: (100.0, 3), 10: (30.0, 13), 20: (20.0, None)}


class Late:
    """Evaluations of a loop, which the run needs before the test has it."""

    loop = None

    def __init__(self, events):
        self._events = events
        self._begun = []

    def begin(self, iteration):
        assert iteration == self.loop.iteration
        self._events.append(("begin", iteration))
        self._begun.append(iteration)

    def take(self):
        for iteration in list(self._begun):
            mean, known_at = RESULTS[iteration]
            if self.loop.iteration >= known_at:
                self._begun.remove(iteration)
                yield self._result(iteration, mean), self._with(iteration)

    def finish(self, iteration):
        self._events.append(("finish", iteration))
        return self._result(iteration, RESULTS[iteration][0])

    def _result(self, iteration, mean):
        return dataclasses.replace(countdown_runs.result(mean), iteration=iteration)

    @contextlib.contextmanager
    def _with(self, iteration):
        counter = self.loop.agent.train_step_counter
        now = counter.numpy()
        counter.assign(iteration)
        yield
        counter.assign(now)


class Note(train.Callback):
    interval = 1

    def __init__(self, events):
        self._events = events

    def on_evaluation(self, result):
        self._events.append(("evaluation", result.iteration, result.mean))


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    path, events = tmp_path_factory.mktemp("late"), []
    late = Late(events)
    run, late.loop = countdown_runs.make_run(
        path, callbacks=[Note(events)], evaluate=late
    )
    return run.run(), path, events


def test_the_run_waits_for_its_last_evaluation_alone(done):
    result, path, events = done
    assert events == [
        ("begin", 0),
        ("evaluation", 0, 100.0),
        ("begin", 10),
        ("evaluation", 10, 30.0),
        ("finish", 20),
        ("evaluation", 20, 20.0),
    ]
    assert (result.best_return, result.last_return) == (30.0, 20.0)
    rows = countdown_runs.rows(path)
    assert [(row["iteration"], row["evaluation_return"]) for row in rows] == [
        ("0", ""),
        ("5", "100.0"),
        ("10", ""),
        ("15", "30.0"),
        ("20", "20.0"),
    ]


def test_the_best_policy_is_the_one_that_was_evaluated(done):
    _, path, _ = done
    for name, step in (("policy", 10), ("final_policy", 20)):
        policy = tf.saved_model.load(str(path / name))
        assert policy.get_train_step() == step
