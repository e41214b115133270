"""Actors, a learner and a server that are killed, and what they do in one process."""

import contextlib
import csv
import dataclasses
import functools
import itertools
import os
import pathlib
import signal
import ssl
import time

import numpy as np
import pytest
import tensorflow as tf

from tests.agents.every_agent import KINDS
from tests.distribute.small_impala import (
    BATCH_SIZE,
    CHECKPOINT_INTERVAL,
    IMPALA,
    NUM_ENVS,
    make_environment,
    open_environments,
)
from tests.distribute.watched import LEARNER, PATIENCE, SERVER, Watched
from tfrl import distribute, replay_service, train
from tfrl.distribute import replay_servers
from tfrl.distribute.roles import actor, learner, run_tables
from tfrl.distribute.weights import reverb_variable_container, shared_weights
from tfrl.eval import evaluate
from tfrl.replay_service.transport import connection, tls
from tfrl.system import (
    child_errors,
    child_process,
    directory_lock,
    file_lock,
    supervisor,
)
from tfrl.train.runs import full_disk
from tfrl.utils import tensor_normalizer


def start_server(experiment, directory):
    return replay_servers.SupervisedServer(
        functools.partial(
            replay_servers.make_server, run_tables.make_tables(experiment), directory
        )
    )


def only(address):
    return replay_servers.FixedServers((address,))


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    server = start_server(IMPALA, tmp_path_factory.mktemp("server"))
    yield server
    server.stop(0.0)


@pytest.fixture(scope="module")
def trained(server, tmp_path_factory):
    """What an actor and a learner have left, one after the other in this process."""
    address = f"localhost:{server.port}"
    client = replay_service.Client(address)
    # The first pull finds no weights. The queue is full after 21 steps, and the actor
    # waits at the 30th one.
    calls = itertools.count()
    open_environments.clear()
    actor.act(IMPALA, only(address), 0, 0, lambda: next(calls) > 14)
    sizes = [client.server_info()["experience"].current_size]
    directory = train.RunDirectory(tmp_path_factory.mktemp("run"), {})
    result = learner.learn(IMPALA, only(address), directory, 2, lambda: False)
    assert result.finished
    assert not open_environments
    sizes.append(client.server_info()["experience"].current_size)
    return address, directory, sizes


@pytest.mark.slow
def test_an_actor_writes_until_the_queue_is_full_and_a_learner_takes_batches(trained):
    _, _, sizes = trained
    assert sizes == [8, 0]


def test_the_learner_pushes_its_weights_and_step(trained):
    address, directory, _ = trained
    container = reverb_variable_container.ReverbVariableContainer(address)
    pulled = container.pull()
    assert pulled[reverb_variable_container.TRAIN_STEP_KEY] == 2
    _, agent = IMPALA.build(0)
    initial = agent.collect_policy.variables()
    moved = [
        np.any(a.numpy() != b.numpy())
        for a, b in zip(
            pulled[reverb_variable_container.POLICY_KEY], initial, strict=True
        )
    ]
    assert all(moved)
    assert tf.train.latest_checkpoint(directory.checkpoints)


def test_a_killed_server_starts_again_with_its_port_and_checkpoint(trained, server):
    address, _, _ = trained
    port = server.port
    os.kill(server.pid, signal.SIGKILL)
    deadline = time.monotonic() + PATIENCE
    while (ending := server.poll()) is None and time.monotonic() < deadline:
        time.sleep(0.01)
    assert ending.how == "was killed by SIGKILL"
    server.stop(0.0)
    server.start(1)
    assert server.port == port
    assert server.poll() is None
    # The learner's last checkpoint came after its last push but one.
    pulled = reverb_variable_container.ReverbVariableContainer(address).pull()
    assert pulled[reverb_variable_container.TRAIN_STEP_KEY] == 2


def test_a_second_run_in_the_directory_is_refused(tmp_path):
    directory = train.RunDirectory(tmp_path, {"num_iterations": 1})
    directory.replay_server.mkdir()
    # A lock belongs to an open file, so this is as one of another process.
    file = directory.replay_server / "lock"
    held = file_lock.FileLock(os.open(file, os.O_RDWR | os.O_CREAT))
    with pytest.raises(directory_lock.DirectoryLockedError, match=f"file {file}"):
        distribute.run_distributed(IMPALA, directory, num_actors=1, num_iterations=1)
    held.release()


class Failing:
    """A launcher whose learner has raised an error."""

    def __init__(self, error=None):
        self._error = error

    @contextlib.contextmanager
    def launch(self, plan):
        yield [supervisor.Member("the learner", lambda _: self)]

    pid = 7

    def poll(self):
        error = child_errors.ChildRaisedError("the learner: its traceback")
        error.original = self._error
        return child_process.Ending("raised an exception", error)

    def stop(self, grace):
        pass


@pytest.mark.parametrize("kind", [full_disk.FullDiskError, ValueError])
def test_an_error_that_says_what_to_do_comes_without_a_traceback(kind, tmp_path):
    directory = train.RunDirectory(tmp_path, {})
    is_explained = kind is not ValueError
    expected = kind if is_explained else child_errors.ChildRaisedError
    said = "^disk: full$" if is_explained else "traceback$"
    with pytest.raises(expected, match=said):
        distribute.run_distributed(
            IMPALA, directory, 1, 1, launcher=Failing(kind("disk: full"))
        )


def test_a_run_that_has_lost_its_checkpoints_ends_before_any_process(tmp_path):
    directory = train.RunDirectory(tmp_path, {})
    directory.policy.mkdir()
    with pytest.raises(train.RunDirectoryError, match=r"but .*checkpoints has no ch"):
        distribute.run_distributed(IMPALA, directory, 1, 1, launcher=Failing())


def make_dmpo(environment, **kwargs):
    return KINDS["DmpoAgent"].make(
        environment.time_step_spec(), environment.action_spec(), **kwargs
    )


def make_replay(name, signature):
    return replay_service.Table(
        name,
        sampler=replay_service.selectors.Uniform(),
        remover=replay_service.selectors.Fifo(),
        max_size=10_000,
        rate_limiter=replay_service.rate_limiters.SampleToInsertRatio(4.0, 50, 200.0),
        signature=signature,
    )


DMPO = distribute.Experiment(
    lambda seed: make_environment(seed, "Pendulum-v1"),
    make_dmpo,
    make_replay,
    sequence_length=6,
    stride_length=1,
    batch_size=BATCH_SIZE,
    push_period=10,
    make_run_settings=IMPALA.make_run_settings,
    jit_compile=False,
)


def run_settings(agent):
    environment = make_environment(1, "MountainCar-v0")
    evaluator = evaluate.Evaluator(environment, agent.policy, NUM_ENVS, seed=0)
    return {
        "evaluate": lambda _: evaluator.run(),
        "eval_interval": 4,
        "log_interval": 2,
        "checkpoint_interval": 2,
    }


@pytest.fixture(scope="module")
def replayed(tmp_path_factory):
    """A normalizing agent's run after 4 iterations, and resumed after 6."""

    def make_agent(environment):
        spec = environment.observation_spec()
        return KINDS["DqnAgent"].make(
            environment.time_step_spec(),
            environment.action_spec(),
            observation_normalizer=tensor_normalizer.StreamingTensorNormalizer(spec),
            n_step_update=5,
        )

    experiment = dataclasses.replace(
        DMPO,
        # Its first episodes are longer than all steps.
        make_environment=lambda seed: make_environment(seed, "MountainCar-v0"),
        make_agent=make_agent,
        make_run_settings=run_settings,
        push_period=2,
    )
    path = tmp_path_factory.mktemp("replayed")
    server = start_server(experiment, path / "server")
    address = f"localhost:{server.port}"
    calls = itertools.count()
    open_environments.clear()
    actor.act(experiment, only(address), 0, 0, lambda: next(calls) > 20)
    results = []
    for length in (4, 6):
        directory = train.RunDirectory(path / "run", {"num_iterations": length})
        results.append(
            learner.learn(experiment, only(address), directory, length, lambda: False)
        )
    container = reverb_variable_container.ReverbVariableContainer(address)
    yield experiment, directory, results, container
    server.stop(0.0)


@pytest.mark.slow
def test_statistics_move_in_the_learner_and_reach_the_actors(replayed):
    experiment, _, _, container = replayed
    _, agent = experiment.build(1)
    statistics = agent.observation_normalizer.variables
    assert statistics[0] == 0
    container.update(shared_weights.shared_variables(agent))
    # Six batches of sequences, the last frames included.
    assert statistics[0] == 6 * BATCH_SIZE * experiment.sequence_length
    assert np.all(statistics[2].numpy() > 0)


def test_a_run_with_actors_writes_what_every_run_writes(replayed):
    _, directory, _, _ = replayed
    for path in (
        directory.checkpoints / "ckpt-6.index",
        directory.final_policy,
        directory.learning_curve,
        directory.policy,
    ):
        assert path.exists()
    assert list(directory.tensorboard.glob("events*"))
    assert directory.finished_iteration() == 6
    with directory.metrics_csv.open() as file:
        rows = list(csv.DictReader(file))
    assert [row["train_steps"] for row in rows] == ["0", "2", "4", "6"]
    assert all(row["loss"] for row in rows[1:])
    # The steps that the table admits. An actor that waits reports them, too.
    steps = 3 * DMPO.pull_period * NUM_ENVS
    assert {row["environment_steps"] for row in rows} == {str(steps)}
    assert [bool(row["evaluation_return"]) for row in rows] == [True, False, True, True]
    # All frames were made by the first weights, and each update drew some of them.
    lags = [(row["policy_lag_p50"], row["policy_lag_p99"]) for row in rows]
    assert lags == [("", ""), ("0.0", "1.0"), ("2.0", "3.0"), ("4.0", "5.0")]
    inserts = float(rows[-1]["replay_size"])
    samples = float(rows[-1]["samples_per_insert"]) * inserts
    in_flight = 3 * BATCH_SIZE
    assert 6 * BATCH_SIZE <= samples <= 6 * BATCH_SIZE + 2 * in_flight
    assert all(float(row["updates_per_second"]) > 0 for row in rows[1:])
    assert [row["shards_alive"] for row in rows] == ["1.0"] * 4


@pytest.mark.slow
def test_a_run_with_actors_resumes(replayed):
    _, _, results, _ = replayed
    assert [result.resumed_at for result in results] == [None, 4]
    assert [result.iteration for result in results] == [4, 6]


# About 40 seconds each: every actor and learner imports TensorFlow.
@pytest.mark.slow
@pytest.mark.parametrize("experiment", [IMPALA, DMPO], ids=["IMPALA", "DMPO"])
def test_a_run_survives_that_each_process_is_killed(experiment, tmp_path, monkeypatch):
    run = Watched(experiment, tmp_path, monkeypatch)
    run.until(lambda: run.step() >= 2 * CHECKPOINT_INTERVAL)
    run.kill("actor 0")
    # It goes on from its checkpoint, not from the beginning.
    assert run.kill(LEARNER) <= CHECKPOINT_INTERVAL
    run.kill(SERVER)
    # A learner that is asked to end saves a checkpoint first.
    assert run.kill(LEARNER, signal.SIGTERM) <= 0
    run.stop()
    for line, name, text in zip(
        run.said,
        ["actor 0", LEARNER, SERVER, LEARNER],
        ["KILL. It is started again now"] * 3 + ["TERM. It is started again in 1 s"],
        strict=True,
    ):
        assert line.startswith(f"{name}: its process ")
        assert f"was killed by SIG{text}" in line


@pytest.mark.slow
def test_a_run_goes_over_tls(tmp_path, monkeypatch):
    data = pathlib.Path(__file__).parents[1] / "replay_service" / "data"
    monkeypatch.setenv(tls.CERTIFICATE_VARIABLE, str(data / "certificate.pem"))
    monkeypatch.setenv(tls.KEY_VARIABLE, str(data / "key.pem"))
    monkeypatch.setenv(connection.TRANSPORT_VARIABLE, "tcp")
    run = Watched(IMPALA, tmp_path, monkeypatch)
    run.until(lambda: run.step() >= 2 * CHECKPOINT_INTERVAL)
    served = ssl.get_server_certificate(("localhost", run.processes[SERVER].port))
    assert served.strip() in (data / "certificate.pem").read_text()
    run.kill(SERVER)
    run.stop()
    assert run.result.iteration > 2 * CHECKPOINT_INTERVAL


def evaluated_settings(agent):
    """Settings that all processes with an agent make."""
    environment = make_environment(1)
    evaluator = evaluate.Evaluator(environment, agent.policy, NUM_ENVS, seed=0)
    return {
        "evaluate": lambda _: evaluator.run(),
        "eval_interval": 50,
        "log_interval": 25,
        "checkpoint_interval": 50,
    }


# About 30 seconds: three processes import TensorFlow, one of them twice.
@pytest.mark.slow
def test_an_evaluator_that_is_killed_once_evaluates_beside_the_learner(
    tmp_path, monkeypatch
):
    experiment = dataclasses.replace(IMPALA, make_run_settings=evaluated_settings)
    run = Watched(
        experiment,
        tmp_path,
        monkeypatch,
        num_actors=1,
        num_iterations=2000,
        evaluator=True,
    )
    name = "the evaluator"
    run.until(lambda: name in run.processes and run.step() >= 100)
    os.kill(run.processes[name].pid, signal.SIGKILL)
    run.until(lambda: run.result is not None)
    assert run.result.finished
    assert [line.split(":")[0] for line in run.said] == [name]
    with (tmp_path / "metrics.csv").open() as file:
        rows = list(csv.DictReader(file))
    returns = [float(row["evaluation_return"] or "nan") for row in rows]
    assert returns[-1] == pytest.approx(run.result.last_return, rel=1e-5)
    # That of the untrained policy does not count.
    assert run.result.best_return in np.float32(returns[1:])
    policy = tf.saved_model.load(str(tmp_path / "policy"))
    step = int(policy.get_train_step())
    assert 0 < step <= 2000
    assert step % 50 == 0
    lags = [float(row["policy_lag_p50"]) for row in rows[1:]]
    assert np.all(np.isfinite(lags))
    assert {row["actors_wanted"] for row in rows} == {"1.0"}
