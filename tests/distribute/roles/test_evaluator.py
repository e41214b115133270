"""The evaluator and the learner's side of it, with an agent of one weight."""

import gc
import types
import weakref

import numpy as np
import pytest
import tensorflow as tf

from tfrl import replay_service, train
from tfrl.distribute import replay_servers
from tfrl.distribute.replay_servers import CentralServer
from tfrl.distribute.roles import evaluator
from tfrl.eval import evaluate


@pytest.fixture
def addresses():
    server = replay_service.Server(evaluator.make_tables(make_agent()))
    yield replay_servers.FixedServers((f"localhost:{server.port}",))
    server.stop()


def make_agent(weight=0.0):
    variable = tf.Variable([weight])
    return types.SimpleNamespace(
        policy=types.SimpleNamespace(variables=lambda: (variable,)),
        train_step_counter=tf.Variable(0, dtype=tf.int64),
        weight=variable,
    )


class Experiment:
    """Evaluations return the weight, and note the limits that they had."""

    is_evaluating = False

    def __init__(self, **settings):
        self.agent = make_agent()
        self.limits = []
        self._settings = {"evaluate": self._evaluate, **settings}

    def build_agent(self):
        return self.agent

    def make_run_settings(self, agent):
        assert agent is self.agent
        return self._settings

    def _evaluate(self, iteration):
        watch, self.is_evaluating = evaluate.current_supervision(), True
        self.limits.append((iteration, watch.max_steps, watch.field))
        watch.between_calls(0, 2, 10)
        self.is_evaluating = False
        weight = float(self.agent.weight.numpy()[0])
        returns = np.array([weight, weight + 2.0], np.float32)
        return evaluate.EvaluationResult(returns, np.array([3, 4]), num_cut=1)


def work_until(experiment, addresses, number):
    """Lets an evaluator work until so many evaluations have begun."""

    def is_stopped():
        # Not while it looks whether to cut an evaluation short.
        return len(experiment.limits) >= number and not experiment.is_evaluating

    evaluator.evaluate(experiment, addresses, is_stopped)


def test_results_come_with_the_weights_that_were_evaluated(addresses, monkeypatch):
    monkeypatch.setattr(evaluator, "_PERIOD", 0.01)
    seconds = iter(range(1000))
    agent = make_agent(5.0)
    learner = evaluator.Evaluations(
        agent, CentralServer(addresses), now=lambda: float(next(seconds))
    )
    assert learner.take() == []
    experiment = Experiment(limits=train.EvaluationLimits(5000))
    learner.begin(0)
    work_until(experiment, addresses, 1)
    for iteration in (10, 20):  # The evaluator is away, and begins with the last one.
        agent.weight.assign([float(iteration)])
        agent.train_step_counter.assign(iteration)
        learner.begin(iteration)
    work_until(experiment, addresses, 2)
    agent.weight.assign([25.0])
    agent.train_step_counter.assign(25)
    first, second = learner.take()
    for (result, weights), weight in ((first, 5.0), (second, 20.0)):
        np.testing.assert_array_equal(result.returns, [weight, weight + 2.0])
        np.testing.assert_array_equal(result.lengths, [3, 4])
        assert result.num_cut == 1
        with weights:
            assert agent.weight.numpy() == [weight]
            assert int(agent.train_step_counter) == result.iteration
        assert agent.weight.numpy() == [25.0]
        assert int(agent.train_step_counter) == 25
    assert [result.iteration for result, _ in (first, second)] == [0, 20]
    assert experiment.limits == [
        (0, 1000, "max_untrained_eval_steps"),
        (20, 5000, "max_eval_steps"),
    ]
    # An evaluator that was started again evaluates again, which counts once.
    work_until(experiment, addresses, 3)
    learner.begin(30)
    assert learner.take() == []


def test_the_last_evaluation_is_waited_for_unless_the_run_is_stopped(
    addresses, monkeypatch
):
    monkeypatch.setattr(evaluator, "_PERIOD", 0.01)
    monkeypatch.setattr(evaluator, "_AGAIN", 0.0)
    agent, experiment = make_agent(7.0), Experiment()
    first = CentralServer(addresses)
    learner = evaluator.Evaluations(agent, first)
    waits = []

    def work(*arguments):
        waits.append(arguments)
        if len(waits) == 1:
            first.client.reset(evaluator.POLICIES)  # The server has lost it.
        else:
            work_until(experiment, addresses, 1)

    def stop(*_):
        raise evaluate.EvaluationInterruptedError

    with evaluate.supervised(evaluate.Supervision(None, "", work)):
        assert learner.finish(40).mean == 8.0
    assert waits == [(0, 1, 0)] * 2
    with (
        evaluate.supervised(evaluate.Supervision(None, "", stop)),
        pytest.raises(evaluate.EvaluationInterruptedError),
    ):
        learner.finish(50)


def test_a_result_with_fewer_returns_than_lengths_is_left_out(addresses, caplog):
    first = CentralServer(addresses)
    learner = evaluator.Evaluations(make_agent(), first)
    learner.begin(5)
    lengths = np.array([3, 4])
    for returns in ([1.0], [1.0, 2.0]):
        result = [np.int64(5), np.array(returns, np.float32), lengths, np.int64(1)]
        first.client.insert(result, {evaluator.RESULTS: 1.0})
    [(result, _)] = learner.take()
    assert (result.mean, result.num_cut) == (1.5, 1)
    assert "is left out: got 1 returns and 2 lengths of episodes" in caplog.text


WEIGHT, ITERATION, NUMBER = np.zeros([1], np.float32), np.int64(5), np.int64(0)


@pytest.mark.parametrize(
    ("table", "data", "message"),
    [
        (evaluator.POLICIES, [ITERATION], "has 1 columns but the table .* has 3"),
        (
            evaluator.POLICIES,
            [ITERATION, WEIGHT.astype(np.float64), ITERATION],
            r"expects column 1 to be a float \[1\] tensor but got a double",
        ),
        (
            evaluator.RESULTS,
            [ITERATION, np.float32(2.0), np.int64(1), NUMBER],
            r"expects column 1 to be a float \[\?\] tensor but got a float \[\]",
        ),
    ],
)
def test_an_item_of_another_form_is_refused_by_the_server(
    addresses, table, data, message
):
    first = CentralServer(addresses)
    good = [np.int64(3), WEIGHT + 2.0, np.int64(30)]
    first.client.insert(good, {evaluator.POLICIES: 1.0})
    with pytest.raises(ValueError, match=message):
        first.client.insert(data, {table: 1.0})
    work_until(experiment := Experiment(), addresses, 1)
    assert experiment.limits[0][0] == 3


def test_an_evaluator_that_is_stopped_cuts_its_evaluation_short(addresses):
    agent, experiment = make_agent(), Experiment()
    first = CentralServer(addresses)
    learner = evaluator.Evaluations(agent, first)
    learner.begin(10)
    evaluator.evaluate(experiment, addresses, lambda: bool(experiment.limits))
    assert len(experiment.limits) == 1
    assert learner.take() == []


@pytest.mark.slow
def test_an_evaluation_that_hangs_keeps_few_copies_of_the_weights(
    addresses, monkeypatch
):
    monkeypatch.setattr(evaluator, "_PERIOD", 0.0)
    agent, experiment, copies = make_agent(1.0), Experiment(), []
    learner = evaluator.Evaluations(agent, CentralServer(addresses))
    values_of, evaluated = evaluator._values, experiment._evaluate

    def values(which):
        values = values_of(which)
        if which is agent:
            copies.append(weakref.ref(values[0]))
        return values

    def hang(iteration):
        # The learner hands over one policy after the other meanwhile.
        if iteration == 10:
            for later in range(20, 300, 10):
                assert learner.take() == []
                agent.weight.assign([float(later)])
                learner.begin(later)
        return evaluated(iteration)

    monkeypatch.setattr(evaluator, "_values", values)
    experiment._settings["evaluate"] = hang
    learner.begin(10)
    work_until(experiment, addresses, 1)
    gc.collect()
    assert sum(copy() is not None for copy in copies) <= 3
    [(result, weights)] = learner.take()
    assert (result.iteration, result.mean) == (10, 2.0)
    with weights:
        assert agent.weight.numpy() == [1.0]
    work_until(experiment, addresses, 2)
    [(result, _)] = learner.take()
    assert (result.iteration, result.mean) == (290, 291.0)


def test_a_line_says_for_what_the_end_of_a_run_waits(addresses, monkeypatch, caplog):
    monkeypatch.setattr(evaluator, "_PERIOD", 0.0)
    seconds = iter(range(0, 100_000, 10))
    agent, experiment, lines = make_agent(7.0), Experiment(), []
    learner = evaluator.Evaluations(
        agent, CentralServer(addresses), now=lambda: float(next(seconds))
    )

    def wait(*_):
        if len(caplog.messages) == 3:
            work_until(experiment, addresses, 1)

    with evaluate.supervised(evaluate.Supervision(None, "", wait)):
        assert learner.finish(1040).mean == 8.0
    lines = [message for message in caplog.messages if "evaluator" in message]
    waited = [line.partition(" has waited ")[2][:5].strip() for line in lines]
    assert waited == ["60 s", "120 s", "240 s"]
    assert "last iteration, 1,040, and " in lines[0]
    assert "evaluator, which has not begun with it. If that hangs, " in lines[0]


def test_an_experiment_without_evaluation_is_refused(addresses):
    with pytest.raises(ValueError, match="'evaluate', expected the function"):
        evaluator.evaluate(Experiment(evaluate=None), addresses, lambda: True)
