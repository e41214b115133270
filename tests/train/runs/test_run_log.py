"""What a run writes for TensorBoard and for loggers."""

import csv
import functools
import json
import re
import sys

import keras
import numpy as np
import pytest
import tensorflow as tf
from tensorboard.backend.event_processing import event_accumulator
from tensorboard.plugins.hparams import plugin_data_pb2

from tests.train import used_loops
from tfrl import testing, train
from tfrl.agents.dqn import dqn_agent
from tfrl.eval import evaluate
from tfrl.loggers import base
from tfrl.networks import q_network
from tfrl.replay_buffers import tf_prioritized_replay_buffer, tf_uniform_replay_buffer
from tfrl.train.runs import progress, run, run_log

CONFIG = {"env": "Counting", "network": {"layers": [4], "bias": True}, "gamma": 0.9}


KINDS = {
    "uniform": tf_uniform_replay_buffer.TFUniformReplayBuffer,
    "prioritized": tf_prioritized_replay_buffer.TFPrioritizedReplayBuffer,
}


def build_loop(environment, kind="uniform"):
    specs = environment.time_step_spec(), environment.action_spec()
    decay = keras.optimizers.schedules.PolynomialDecay
    agent = dqn_agent.DqnAgent(
        *specs,
        q_network=q_network.QNetwork(
            specs[0].observation, specs[1], fc_layer_params=(), seed=0
        ),
        optimizer=keras.optimizers.Adam(decay(1e-2, 10, 0.0)),
        epsilon_greedy=decay(1.0, 16, 0.0),
        seed=0,
    )
    agent.initialize()
    return train.OffPolicyLoop(
        environment,
        agent,
        KINDS[kind](agent.collect_data_spec, batch_size=1, max_length=50, seed=0),
        initial_collect_steps=8,
        sample_batch_size=4,
        seed=0,
    )


pool = used_loops.Pool(build_loop)


def make_loop(**arguments):
    return pool.take(testing.CountingEnvironment(3), **arguments)


MEASURED = (
    "explained_variance",
    "gradient_norm",
    "learning_rate",
    "loss",
    "q_value",
    "reward_size",
    "target_weights_change",
    "target_weights_norm",
    "td_error",
    "weights_change",
    "weights_norm",
)


def make_run(path, loop=None, **kwargs):
    """A run of 8 iterations, logged after every fourth."""
    loop = loop or make_loop()
    settings = {"num_iterations": 8, "eval_interval": 8, "log_interval": 4, **kwargs}
    return train.Run(loop, train.RunDirectory(path, CONFIG), **settings), loop


@pytest.fixture(scope="module")
def logged(tmp_path_factory):
    """The folder of a run, and the rows that its logger received."""
    path = tmp_path_factory.mktemp("logged")
    memory = base.InMemoryLogger()
    run, _ = make_run(
        path,
        loggers=[memory],
        evaluate=lambda i: evaluate.EvaluationResult(
            np.array([i, i], np.float32), np.array([3, 5])
        ),
    )
    run.run()
    return path, memory.data


def events(path):
    return event_accumulator.EventAccumulator(str(path / "tensorboard")).Reload()


def scalars(path):
    """Returns `{tag: {step: value}}`."""
    read = events(path)
    return {
        tag: {e.step: tf.make_ndarray(e.tensor_proto).item() for e in read.Tensors(tag)}
        for tag in read.Tags()["tensors"]
        if not tag.startswith("_hparams_")
    }


def test_the_tags_in_tensorboard_are_grouped(logged):
    found = scalars(logged[0])
    assert found.keys() == {
        "collect/average_return",
        "collect/episodes",
        "eval/average_length",
        "eval/average_return",
        "eval/return_std",
        "exploration/epsilon",
        "replay/size",
        "time/environment_steps",
        "time/steps_per_second",
        "time/train_steps",
        "time/training_seconds",
        *(f"train/{name}" for name in MEASURED),
    }
    assert found["eval/average_return"] == {0: 0.0, 8: 8.0}
    assert found["eval/average_length"] == {0: 4.0, 8: 4.0}
    # 8 initial steps, one for each iteration, and boundaries.
    assert found["replay/size"] == {0: 0.0, 4: 12.0, 8: 16.0}
    assert found["exploration/epsilon"] == {0: 1.0, 4: 0.75, 8: 0.5}
    rates = {0: 0.01, 4: 0.006, 8: 0.002}
    assert found["train/learning_rate"] == pytest.approx(rates, rel=1e-5)
    for name in ("q_value", "td_error", "gradient_norm"):
        assert found[f"train/{name}"].keys() == {4, 8}
        assert all(map(np.isfinite, found[f"train/{name}"].values()))


def test_loggers_receive_the_same_numbers_and_the_table_keeps_its_columns(logged):
    path, data = logged
    found = scalars(path)
    assert [row["epsilon"] for row in data] == [1.0, 0.75, 0.5]
    assert [row["replay_size"] for row in data] == [0, 12, 16]
    for row in data[1:]:
        shown = found["train/q_value"][row["iteration"]]
        assert row["q_value"] == pytest.approx(shown, rel=1e-6)
    with open(path / "metrics.csv", newline="") as file:
        assert next(csv.reader(file)) == [
            "iteration",
            "environment_steps",
            "train_steps",
            "episodes",
            "training_seconds",
            "loss",
            "average_return",
            "evaluation_return",
            "evaluation_return_std",
            "evaluation_length",
        ]


def test_a_view_adds_columns_which_replace_the_numbers_of_the_loop(tmp_path):
    class View:
        def measure(self):
            return {"actors": 2, "replay_size": 1234567.8, "never": float("nan")}

        def words(self):
            return []

    memory = base.InMemoryLogger()
    log = run_log.RunLog(
        make_loop(), train.RunDirectory(tmp_path, CONFIG), [memory], {}, View()
    )
    with log.opened():
        log.write(None)
    with open(tmp_path / "metrics.csv", newline="") as file:
        [row] = csv.DictReader(file)
    last = ("evaluation_length", ""), ("actors", "2.0"), ("replay_size", "1234570.0")
    assert tuple(row.items())[-4:] == (*last, ("never", ""))
    assert memory.data[0]["replay_size"] == 1234570
    assert scalars(tmp_path)["replay/size"] == {0: 1234570.0}


def test_the_first_row_has_the_change_of_the_weights_since_the_log_was_opened():
    loop = make_loop(own=True)
    log = run_log.RunLog(loop, None, [], {})
    with log.opened():
        before = np.concatenate([v.numpy().ravel() for v in _trained(loop)])
        loop.run(4)
        after = np.concatenate([v.numpy().ravel() for v in _trained(loop)])
        log.write(None)
    (row,) = log.history.rows
    change = np.linalg.norm(after - before) / np.linalg.norm(after) / 4
    assert row["weights_change"] == pytest.approx(change, rel=1e-4)


def _trained(loop):
    return loop.agent.weights_by_name()["weights"]


def test_facts_about_the_environment_are_found_once_for_the_first_row():
    found = []

    def find_facts():
        found.append(1)
        return {"time_limit": 200}

    log = run_log.RunLog(make_loop(), None, [], {}, find_facts=find_facts)
    for _ in range(2):
        with log.opened():
            log.write(None)
    first, second = log.history.rows
    assert first["environment"] == {"time_limit": 200}
    assert "environment" not in second
    assert found == [1]


@pytest.mark.parametrize("value", ["x", [1.0, 2.0]])
def test_what_is_no_number_is_told_with_the_name_of_its_metric(value):
    log = run_log.RunLog(make_loop(), None, [], {"mine": lambda: value})
    message = rf"metrics\['mine'\]: got {re.escape(repr(value))} from the function"
    with log.opened(), pytest.raises(TypeError, match=message):
        log.write(None)


@pytest.mark.slow
def test_initial_steps_do_not_count_in_the_speed(tmp_path, monkeypatch):
    clock = iter(range(10**6))
    monkeypatch.setattr("tfrl.train.runs.run.time.monotonic", lambda: next(clock))
    memory = base.InMemoryLogger()
    loop = make_loop(own=True)
    make_run(tmp_path, loop, loggers=[memory], log_interval=8)[0].run()
    steps = [row["environment_steps"] for row in memory.data]
    seconds = [row["training_seconds"] for row in memory.data]
    # Of 16 frames, every fourth is a boundary.
    assert steps == [0, 12]
    assert memory.data[1]["steps_per_second"] * seconds[1] == pytest.approx(
        6.0, rel=1e-5
    )
    assert "steps_per_second" not in memory.data[0]


def test_seconds_in_python_are_those_of_training(tmp_path, monkeypatch):
    clock = iter(range(10**6))
    monkeypatch.setattr(
        "tfrl.environments.tf_py_environment.time.perf_counter", lambda: next(clock)
    )
    loop = make_loop(own=True)
    make_run(tmp_path, loop, log_interval=8)[0].run()
    lines = (tmp_path / "diagnostics.jsonl").read_text().splitlines()
    seconds = [json.loads(line)["environment_seconds"] for line in lines]
    # Of 16 frames, 8 are initial experience. Evaluations do not count, either.
    assert seconds == [0, 8]


def test_tensorboard_shows_the_configuration(logged):
    metadata = events(logged[0]).summary_metadata["_hparams_/session_start_info"]
    content = plugin_data_pb2.HParamsPluginData.FromString(metadata.plugin_data.content)
    written = content.session_start_info.hparams
    assert {name: value.WhichOneof("kind") for name, value in written.items()} == {
        "env": "string_value",
        "network.layers": "string_value",
        "network.bias": "bool_value",
        "gamma": "number_value",
    }
    assert written["gamma"].number_value == 0.9
    assert written["network.layers"].string_value == "[4]"


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["uniform", "prioritized"])
def test_the_log_does_not_change_the_training(tmp_path, kind):
    loop = make_loop(kind=kind)
    loop.run(8)
    expected = [v.numpy() for v in loop.agent.variables()]
    pool.take_back()
    loop = make_loop(kind=kind)  # The same one, as it was built.
    assert loop.iteration == 0
    make_run(tmp_path, loop, log_interval=1)[0].run()
    for ours, theirs in zip(loop.agent.variables(), expected, strict=True):
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.slow
def test_the_first_line_comes_before_the_first_evaluation_ends(
    tmp_path, capsys, monkeypatch
):
    # No line is due, however slowly the program is traced.
    patient = functools.partial(progress.Progress, seconds_between_lines=1e9)
    monkeypatch.setattr(run.progress, "Progress", patient)
    said = []

    def evaluate_and_listen(iteration):
        said.append(capsys.readouterr().err)
        return evaluate.EvaluationResult(np.zeros(1, np.float32), np.ones(1, np.int64))

    make_run(tmp_path, make_loop(own=True), evaluate=evaluate_and_listen)[0].run()
    assert said[0] == "iteration 0 of 8: evaluating the policy\n"
    assert said[1] == (
        "iteration 0 of 8: collecting initial experience, then tracing the training "
        "loop\niteration 0 of 8: training\n"
    )


def test_the_seconds_of_a_call_are_not_kept_by_tensorflow(tmp_path):
    loop = make_loop()
    log = run_log.RunLog(loop, train.RunDirectory(tmp_path, CONFIG), [], {})
    seconds = float("123.25")
    before = sys.getrefcount(seconds)
    log.called(loop.info(0.5), 3, seconds)
    assert log.seconds.numpy() == seconds
    assert sys.getrefcount(seconds) == before
