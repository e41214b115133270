"""Runs over several replay servers, in one process and in several."""

import contextlib
import dataclasses
import itertools
import json
import os
import signal

import pytest

from tests.distribute.small_impala import CHECKPOINT_INTERVAL, IMPALA, make_replay
from tests.distribute.watched import LEARNER, SERVER, Watched
from tfrl import replay_service, train
from tfrl.distribute import replay_servers
from tfrl.distribute.roles import actor, learner, run_tables

OTHER = "replay server 1"
REPLAY = dataclasses.replace(IMPALA, make_table=make_replay)


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """What two actors and a learner have left in two servers, in this process."""
    path = tmp_path_factory.mktemp("sharded")
    with contextlib.ExitStack() as stack:
        addresses = []
        for number, made in enumerate(run_tables.make_shards(REPLAY, 2)):
            server = replay_servers.make_server(made, path / str(number))
            stack.callback(server.stop)
            addresses.append(f"localhost:{server.port}")
        servers = replay_servers.FixedServers(tuple(addresses))
        for number in range(2):
            calls = itertools.count()
            # Two items of 19 rollouts; each server waits for 25 before it is sampled.
            actor.act(REPLAY, servers, number, 0, lambda calls=calls: next(calls) > 39)
        clients = [replay_service.Client(address) for address in addresses]
        directory = train.RunDirectory(path / "run", {})
        result = learner.learn(REPLAY, servers, directory, 6, lambda: False)
        infos = [client.server_info()["experience"] for client in clients]
        yield result, directory, infos


@pytest.mark.slow
def test_each_actor_writes_to_its_own_server_and_the_learner_draws_from_both(trained):
    result, _, infos = trained
    assert result.finished
    counts = [info.counts for info in infos]
    assert [count.inserts for count in counts] == [38, 38]
    assert all(info.counts.samples > 0 for info in infos)
    assert sum(info.counts.samples for info in infos) >= 6 * REPLAY.batch_size


@pytest.mark.slow
def test_the_manifest_names_the_checkpoints_of_all_servers(trained):
    _, directory, _ = trained
    manifest = json.loads(directory.manifest.read_text())
    assert manifest["iteration"] == 6
    assert manifest["learner"].endswith("ckpt-6")
    assert len(set(manifest["shards"])) == 2
    assert all(os.path.exists(path) for path in manifest["shards"])


# About a minute.
@pytest.mark.slow
def test_a_run_survives_that_servers_are_killed_and_stopped(tmp_path, monkeypatch):
    run = Watched(REPLAY, tmp_path, monkeypatch, num_shards=2)
    run.until(lambda: run.step() >= 40)
    assert run.kill(OTHER) <= 0
    # Until the next push it has the weights of its checkpoint.
    assert run.kill(SERVER) <= CHECKPOINT_INTERVAL
    other = run.client_of(OTHER)

    def samples():
        return other.server_info()["experience"].counts.samples

    for name, progress in ((OTHER, run.step), (SERVER, samples)):
        stopped, before = run.processes[name].pid, progress()
        os.kill(stopped, signal.SIGSTOP)
        # Farther than what was on its way.
        run.until(lambda progress=progress, before=before: progress() >= before + 200)
        os.kill(stopped, signal.SIGCONT)
    run.kill("actor 1")
    assert run.kill(LEARNER) <= CHECKPOINT_INTERVAL
    run.stop()
    assert not run.result.finished
    manifest = json.loads((tmp_path / "manifest.json").read_text())
    assert manifest["iteration"] == run.result.iteration
    # The next run says what it goes on from, and ends.
    again = Watched(
        REPLAY,
        tmp_path,
        monkeypatch,
        num_shards=2,
        num_iterations=run.result.iteration + 10,
    )
    again.join()
    assert again.result.finished
    assert again.said[0].startswith(f"Resuming from iteration {run.result.iteration}; ")


# About a minute.
@pytest.mark.slow
def test_replicas_of_a_learner_train_and_one_goes_on_from_their_checkpoint(
    tmp_path, monkeypatch
):
    results, said = [], []
    for num_learners, length in ((2, 24), (1, 34)):
        run = Watched(
            IMPALA,
            tmp_path,
            monkeypatch,
            num_learners=num_learners,
            num_iterations=length,
        )
        run.join()
        results.append(run.result)
        said += run.said
    assert [result.iteration for result in results] == [24, 34]
    assert [result.resumed_at for result in results] == [None, 24]
    assert len(said) == 1
    assert "from iteration 24" in said[0]
