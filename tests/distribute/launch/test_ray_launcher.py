"""Processes that Ray places. Tests of whole runs are slow."""

import os
import pathlib
import shutil
import signal
import ssl
import subprocess
import sys
import threading
import time
import types

import numpy as np
import pytest

from tests.distribute import small_impala
from tfrl import distribute, replay_service, train
from tfrl.distribute.coordination import remote_work
from tfrl.distribute.coordination.coordinator import Coordinator
from tfrl.distribute.launch import ray_actor
from tfrl.distribute.process_roles import ACTOR, LEARNER, REPLAY, Task
from tfrl.distribute.roles import actor_reports
from tfrl.replay_service.transport import addresses, connection, tls

PATIENCE = 400.0


def test_without_ray_the_error_says_how_to_install_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(ImportError, match=r"pip install 'tfrl\[ray\]'"):
        distribute.RayLauncher()


@pytest.fixture
def ray():
    module = pytest.importorskip("ray", reason="Ray is not installed")
    yield module
    assert not module.is_initialized()


def test_resources_are_those_of_roles(ray):
    with pytest.raises(ValueError, match="got the roles \\['critic'\\]"):
        distribute.RayLauncher(resources={"evaluator": {}, "critic": {}})


def test_a_worker_has_the_runs_token_and_files_of_tls(monkeypatch):
    known = []

    def work(task, coordinator, make_experiment):
        known.append((connection.default_token(), os.environ[tls.KEY_VARIABLE]))
        known.append((task, coordinator, make_experiment(seed=3)))
        return 0

    monkeypatch.setattr(remote_work, "work", work)
    monkeypatch.setenv(tls.KEY_VARIABLE, "another.pem")
    variables, task = {tls.KEY_VARIABLE: "key.pem"}, Task(ACTOR, 1)
    try:
        done = ray_actor.RayActor().work(task, "a:1", "what to do", "token", variables)
    finally:
        connection.set_default_token(None)
    assert done == 0
    assert known == [("token", "key.pem"), (task, "a:1", "what to do")]


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="/proc is Linux's")
def test_ray_places_a_server_whose_token_only_the_run_knows(ray, tmp_path, monkeypatch):
    monkeypatch.delenv("TFRL_REPLAY_TOKEN", raising=False)
    plan = types.SimpleNamespace(
        experiment=None,
        tasks=[Task(REPLAY)],
        shared_settings={
            "tables": [[actor_reports.make_table().to_config()]],
            "server_directories": [str(tmp_path)],
        },
    )
    said, made = [], []
    make = Coordinator.__init__

    def remember(coordinator, *arguments, **kwargs):
        make(coordinator, *arguments, **kwargs)
        made.append((coordinator, kwargs["token"]))

    monkeypatch.setattr(Coordinator, "__init__", remember)
    with distribute.RayLauncher(say=said.append).launch(plan) as members:
        server, replay = (member.start(0) for member in members)
        [(coordinator, token)] = made
        deadline = time.monotonic() + PATIENCE
        while (found := coordinator.worker(Task(REPLAY))) is None or not found.address:
            assert replay.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.1)
        client = replay_service.Client(found.address, token=token)
        client.insert(np.zeros([4]), {actor_reports.DEFAULT_TABLE: 1.0})
        with pytest.raises(replay_service.errors.AuthenticationError):
            replay_service.Client(found.address).server_info()
        for process in (replay, server):
            for file in ("cmdline", "environ"):
                shown = pathlib.Path(f"/proc/{process.pid}/{file}").read_bytes()
                assert token.encode() not in shown
        replay.stop(10.0)
        server.stop(1.0)
    assert said == [f"the replay server: process {found.pid} on {found.host}."]


class Watched:
    """A run in a thread, with its coordinator."""

    def __init__(self, directory, launcher, monkeypatch, **settings):
        made, make = [], Coordinator.__init__

        def remember(coordinator, *arguments, **kwargs):
            make(coordinator, *arguments, **kwargs)
            made.append((coordinator, kwargs["token"]))

        monkeypatch.setattr(Coordinator, "__init__", remember)
        self.said, self.error, self.result = [], None, None
        self.is_stopped = threading.Event()

        def run():
            try:
                self.result = distribute.run_distributed(
                    small_impala.make_experiment(seed=3),
                    train.RunDirectory(directory, {}),
                    launcher=launcher,
                    is_stopped=self.is_stopped.is_set,
                    say=self.said.append,
                    **{"num_actors": 1, "num_iterations": 10**9, **settings},
                )
            except Exception as error:
                self.error = error

        self.thread = threading.Thread(target=run)
        self.thread.start()
        self.until(lambda: made)
        self.coordinator, self.token = made[0]

    def until(self, condition):
        deadline = time.monotonic() + PATIENCE
        while not condition():
            assert self.error is None, self.error
            assert time.monotonic() < deadline, self.said
            time.sleep(0.1)

    def step(self):
        """The train step of the newest weights; -1 if there are none."""
        server = self.coordinator.worker(Task(REPLAY))
        if server is None or server.address is None:
            return -1
        client = replay_service.Client(server.address, token=self.token)
        if not client.server_info()["variables"].current_size:
            return -1
        [sample] = client.sample("variables", 1, emit_timesteps=False)
        return int(sample.data[-1][0])

    def kill(self, task):
        """Kills a process, and waits until the run goes on without it."""
        killed = self.coordinator.worker(task)
        os.kill(killed.pid, signal.SIGKILL)
        self.until(lambda: self.coordinator.worker(task) is not killed)
        steps = [self.step()]
        self.until(lambda: steps.append(self.step()) or steps[-1] >= steps[0] + 8)

    def stop(self):
        self.is_stopped.set()
        self.thread.join(PATIENCE)
        assert not self.thread.is_alive()
        assert self.error is None, self.error


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_a_run_on_ray_survives_that_each_process_is_killed(ray, tmp_path, monkeypatch):
    run = Watched(tmp_path, distribute.RayLauncher(), monkeypatch)
    run.until(lambda: run.step() >= 2 * small_impala.CHECKPOINT_INTERVAL)
    for task in (Task(ACTOR), Task(REPLAY), Task(LEARNER)):
        run.kill(task)
    run.stop()
    assert run.result.iteration > 0
    assert {line.split(":")[0] for line in run.said} >= {
        "actor 0",
        "the replay server",
        "the learner",
    }


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_process_that_ray_cannot_place_is_an_error_with_the_resources(ray, tmp_path):
    launcher = distribute.RayLauncher(
        resources={"replay": {"num_gpus": 1000}}, patience=5.0
    )
    with pytest.raises(TimeoutError, match=r"'num_gpus': 1000.*the nodes have"):
        distribute.run_distributed(
            small_impala.make_experiment(seed=3),
            train.RunDirectory(tmp_path, {}),
            num_actors=1,
            num_iterations=1,
            launcher=launcher,
            say=[].append,
        )


@pytest.fixture
def cluster(ray):
    """A cluster of two nodes on this host, of which only the second has `far`."""
    from ray import cluster_utils

    fast = {
        "health_check_period_ms": 1000,
        "health_check_failure_threshold": 5,
        "health_check_initial_delay_ms": 1000,
    }
    made = cluster_utils.Cluster(
        initialize_head=True,
        head_node_args={
            "num_cpus": 6,
            "include_dashboard": False,
            "_system_config": fast,
        },
    )
    made.far = made.add_node(num_cpus=4, resources={"far": 4})
    yield made
    made.shutdown()


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_run_on_two_nodes_goes_over_tls(cluster, tmp_path, monkeypatch):
    if shutil.which("openssl") is None:
        pytest.skip("openssl makes the certificate of this host's address")
    certificate, key = tmp_path / "certificate.pem", tmp_path / "key.pem"
    command = (
        "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes "
        f"-subj /CN=tfrl -addext subjectAltName=IP:{cluster.address.split(':')[0]}"
    )
    files = "-keyout", key, "-out", certificate
    subprocess.run([*command.split(), *files], check=True)
    # The nodes have been started without them.
    monkeypatch.setenv(tls.CERTIFICATE_VARIABLE, str(certificate))
    monkeypatch.setenv(tls.KEY_VARIABLE, str(key))
    launcher = distribute.RayLauncher(
        cluster.address, resources={"actor": {"resources": {"far": 1}}}
    )
    run = Watched(tmp_path / "run", launcher, monkeypatch)
    run.until(lambda: run.step() >= 4)
    address = addresses.split(run.coordinator.worker(Task(REPLAY)).address)
    assert ssl.get_server_certificate(address) == certificate.read_text()
    run.stop()
    assert run.result.iteration > 0


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_what_a_lost_node_did_is_done_where_there_is_room(
    cluster, tmp_path, monkeypatch
):
    launcher = distribute.RayLauncher(
        cluster.address, resources={"actor": {"resources": {"far": 1}}}
    )
    run = Watched(
        tmp_path, launcher, monkeypatch, num_actors=2, num_shards=2, num_learners=2
    )
    run.until(lambda: run.step() >= 2 * small_impala.CHECKPOINT_INTERVAL)
    lost = [run.coordinator.worker(Task(ACTOR, number)) for number in range(2)]
    [raylet] = cluster.far.all_processes["raylet"]
    os.kill(raylet.process.pid, signal.SIGKILL)
    run.until(lambda: sum("actor" in line for line in run.said) >= 2)
    # No node has room for them now, so they wait for one.
    cluster.add_node(num_cpus=4, resources={"far": 4})
    for number in range(2):
        task = Task(ACTOR, number)
        run.until(lambda task=task: run.coordinator.worker(task) not in lost)
    before = run.step()
    run.until(lambda: run.step() >= before + 8)
    run.kill(Task(REPLAY, 1))
    run.kill(Task(LEARNER, 1))
    run.stop()
    assert run.result.iteration > before
