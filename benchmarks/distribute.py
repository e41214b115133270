"""Measures runs with actors, replay servers and a learner on one host.

    python -m benchmarks.distribute
    python -m benchmarks.distribute overhead pacing

- `overhead`: the processor time of a step in `run_distributed`, with one actor and with
  two, beside three processes that are written by hand on the replay service: an actor,
  a server and a learner.
- `actors`: the steps a second of 1, 2, 4 and 8 actors, whose environments sleep for a
  millisecond in each step.
- `lag`: the policy lag, beside the policy lag that a formula predicts.
- `pacing`: the samples per insert of unequal actors over a minute, with 1 and 3 shards,
  beside the window that the rate limiters allow.

Needs Linux, which tells the processor time of other processes.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import os
import pathlib
import secrets
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from benchmarks import noting, processes

_NUM_ENVS, _LENGTH, _BATCH_SIZE, _PUSH_PERIOD = 16, 5, 16, 4
_PULL_PERIOD = _PUSH_PERIOD * _LENGTH
_WARM_UP, _WINDOW = 400, 1600  # Updates.
_ROUNDS = 3
_POLL = 0.05  # Seconds.

# Returns the process id, and the port or 0, of each process by its name.
_Found = Callable[[], dict[str, tuple[int, int]]]


# The experiment of `overhead`: IMPALA on CartPole, written in TensorFlow.


def make_environment(seed: int) -> Any:
    """Makes 16 CartPoles."""
    from tfrl.environments import native

    return native.load("CartPole-v1", _NUM_ENVS, seed)


def make_agent(environment: Any) -> Any:
    """Makes IMPALA with networks of two layers of 64 units."""
    import keras

    from tfrl import agents

    specs = environment.time_step_spec(), environment.action_spec()
    actor_net, value_net = agents.ppo.ppo_networks.create_networks(
        specs[0].observation, specs[1], fc_layer_params=(64, 64), seed=0
    )
    return agents.ImpalaAgent(
        *specs,
        keras.optimizers.Adam(7e-4),
        actor_net,
        value_net,
        gradient_clipping=0.5,
        collect_update_period=1,
        seed=0,
    )


def make_queue(name: str, signature: Any) -> Any:
    """Makes a queue of two batches."""
    from tfrl import replay_service

    return replay_service.Table.queue(name, 2 * _BATCH_SIZE, signature=signature)


def make_experiment() -> Any:
    """Makes the experiment."""
    from tfrl import distribute

    return distribute.Experiment(
        make_environment,
        make_agent,
        make_queue,
        sequence_length=_LENGTH + 1,
        stride_length=_LENGTH,
        batch_size=_BATCH_SIZE,
        push_period=_PUSH_PERIOD,
        pull_period=_PULL_PERIOD,
        make_run_settings=lambda _: {
            "checkpoint_interval": 10**6,
            "log_interval": 250,
        },
    )


# The same by hand.


def _serve_by_hand(folder: pathlib.Path) -> None:
    from tfrl import replay_service
    from tfrl.distribute import replay_servers
    from tfrl.distribute.roles import run_tables
    from tfrl.distribute.weights import shared_weights
    from tfrl.specs import tensor_spec

    agent = make_agent(make_environment(0))
    agent.initialize()
    sequence = tensor_spec.add_outer_dim(agent.collect_data_spec, _LENGTH + 1)
    server = replay_service.Server(
        [
            make_queue(run_tables.SEQUENCES, sequence),
            replay_servers.make_table(
                shared_weights.VARIABLES,
                1,
                shared_weights.weights_spec(agent),
                max_times_sampled=0,
            ),
        ]
    )
    (folder / "server").write_text(f"{server.pid} {server.port}")
    server.wait()


def _act_by_hand(address: str) -> None:
    from tfrl import distribute, replay_buffers, replay_service, train
    from tfrl.distribute.roles import run_tables
    from tfrl.distribute.weights import shared_weights

    environment = make_environment(1)
    agent = make_agent(environment)
    agent.initialize()
    container = distribute.ReverbVariableContainer(address)
    write = replay_buffers.ReverbRolloutObserver(
        replay_service.Client(address),
        run_tables.SEQUENCES,
        _LENGTH + 1,
        _LENGTH,
        batch_size=_NUM_ENVS,
        rollout_length=_PULL_PERIOD,
    )
    loop = train.ActorLoop(environment, agent, seed=1, jit_compile=True)
    while True:
        container.update(shared_weights.shared_variables(agent))
        write(loop.collect_frames(_PULL_PERIOD))
        write.flush()


def _learn_by_hand(address: str) -> None:
    from tfrl import distribute, replay_buffers, train
    from tfrl.distribute.roles import run_tables
    from tfrl.distribute.weights import shared_weights

    agent = make_agent(make_environment(0))
    agent.initialize()
    container = distribute.ReverbVariableContainer(address)
    buffer = replay_buffers.ReverbReplayBuffer(
        agent.collect_data_spec,
        run_tables.SEQUENCES,
        _LENGTH + 1,
        server_address=address,
    )
    loop = train.DatasetLoop(
        agent,
        lambda: buffer.as_dataset(sample_batch_size=_BATCH_SIZE),
        buffer,
        compiled_updates=_PUSH_PERIOD,
    )
    while True:
        container.push(shared_weights.shared_variables(agent))
        loop.run(_PUSH_PERIOD)


@contextlib.contextmanager
def _by_hand(
    folder: pathlib.Path,
) -> Iterator[_Found]:
    """Runs the three processes; gives the process id, and port, of each."""
    started: dict[str, subprocess.Popen[bytes]] = {}

    def start(role: str, *arguments: str) -> None:
        command = [sys.executable, "-m", "benchmarks.distribute", f"--role={role}"]
        started[role] = subprocess.Popen([*command, *arguments], cwd=processes.ROOT)

    try:
        start("server", f"--folder={folder}")
        _until(lambda: (folder / "server").exists() and (folder / "server").read_text())
        pid, port = map(int, (folder / "server").read_text().split())
        for role in ("actor", "learner"):
            start(role, f"--address=localhost:{port}")
        found = {role: (process.pid, 0) for role, process in started.items()}
        yield lambda: {**found, "server": (pid, port)}
    finally:
        for process in started.values():
            noting.kill([process.pid, *noting.descendants(process.pid)])
            process.wait()


@contextlib.contextmanager
def _distributed(
    folder: pathlib.Path, experiment: Any, num_actors: int, num_shards: int = 1
) -> Iterator[_Found]:
    """Runs `run_distributed` in a thread; gives the records of its processes."""
    from tfrl import distribute, train

    names = [f"actor {n}" for n in range(num_actors)]
    names += [
        "the replay server",
        *(f"replay server {n}" for n in range(1, num_shards)),
    ]
    is_over = threading.Event()
    thread = threading.Thread(
        target=distribute.run_distributed,
        args=(experiment, train.RunDirectory(folder / "run", {}), num_actors, 10**9),
        kwargs={
            "num_shards": num_shards,
            "launcher": noting.NotingLauncher(folder, distribute.LocalLauncher()),
            "is_stopped": is_over.is_set,
        },
    )
    thread.start()
    try:
        found: dict[str, tuple[int, int]] = {}

        def processes_of_run() -> dict[str, tuple[int, int]]:
            for name in [*names, "the learner"]:
                noted = noting.noted(folder, name)
                if noted:
                    found[name] = noted
            return found

        _until(lambda: len(processes_of_run()) == len(names) + 1)
        yield processes_of_run
    finally:
        is_over.set()
        thread.join()


def _until(condition: Callable[[], Any], patience: float = 300.0) -> None:
    deadline = time.monotonic() + patience
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(f"nothing happened within {patience:g} s")
        time.sleep(_POLL)


def _limiter(port: int) -> Any:
    """Returns a server's counts for its table of sequences."""
    from tfrl import replay_service

    client = replay_service.Client(f"localhost:{port}")
    return client.server_info()["experience"].rate_limiter_info


def _has_sampled(port: int, number: int) -> bool:
    return _limiter(port).sample_stats.completed > number


def _seconds_per_step(found: dict[str, tuple[int, int]]) -> dict[str, float]:
    """Waits until the run is warm; returns the processor time of a step by role."""
    port = max(port for _, port in found.values())
    _until(functools.partial(_has_sampled, port, _WARM_UP * _BATCH_SIZE))
    before, start = _limiter(port).sample_stats.completed, _used(found)
    _until(functools.partial(_has_sampled, port, before + _WINDOW * _BATCH_SIZE))
    after, end = _limiter(port).sample_stats.completed, _used(found)
    steps = (after - before) * _LENGTH
    return {name: (end[name] - start[name]) / steps for name in end}


def _used(found: dict[str, tuple[int, int]]) -> dict[str, float]:
    return {name: noting.seconds_used(pid) for name, (pid, _) in found.items()}


def overhead(say: Callable[[str], None]) -> None:
    """Measures the cost of `run_distributed` beside three processes by hand."""
    ways: dict[str, Callable[[pathlib.Path], Any]] = {
        "1 actor by hand": _by_hand,
        **{
            f"{number} in run_distributed": functools.partial(
                _distributed, experiment=make_experiment(), num_actors=number
            )
            for number in (1, 2)
        },
    }
    totals: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(_ROUNDS):
        for name, way in ways.items():
            with (
                tempfile.TemporaryDirectory() as folder,
                way(pathlib.Path(folder)) as found,
            ):
                used = _seconds_per_step(found())
            totals[name].append(sum(used.values()))
            roles = ", ".join(f"{role} {1e6 * x:.1f}" for role, x in used.items())
            say(f"{name:<22}{1e6 * totals[name][-1]:6.1f} us a step ({roles})")
    ratios = [b / a for a, b, _ in zip(*totals.values(), strict=True)]
    median = statistics.median(ratios)
    say(f"ratio with 1 actor: {median:.2f} ({min(ratios):.2f}-{max(ratios):.2f})")


# The experiment of `actors` and `pacing`: environments that sleep.


def _make_sleeping(seed: int, times: Sequence[float]) -> Any:
    # Not at the top: pickling this function leaves out the names of the module that
    # only the body of a class uses.
    from typing_extensions import override

    from tfrl import environments
    from tfrl.environments import py_environment
    from tfrl.specs import array_spec
    from tfrl.trajectories import time_step as ts

    class Sleeping(py_environment.PyEnvironment):
        """Sleeps in each step; ends an episode after 200 steps."""

        _seconds = times[seed % len(times)]
        _count = 0

        def observation_spec(self) -> array_spec.ArraySpec:
            return array_spec.ArraySpec((4,), np.float32)

        def action_spec(self) -> array_spec.BoundedArraySpec:
            return array_spec.BoundedArraySpec((), np.int32, 0, 1)

        def _reset(self) -> ts.TimeStep:
            return ts.restart(np.zeros(4, np.float32))

        @override
        def _step(self, action: Any) -> ts.TimeStep:
            time.sleep(self._seconds)
            self._count += 1
            end = ts.termination if self._count % 200 == 0 else ts.transition
            return end(np.zeros(4, np.float32), 1.0)

    return environments.TFPyEnvironment(Sleeping())


def _make_dqn(environment: Any) -> Any:
    import keras

    from tfrl import agents, networks

    specs = environment.time_step_spec(), environment.action_spec()
    net = networks.QNetwork(specs[0].observation, specs[1], fc_layer_params=(), seed=0)
    return agents.DqnAgent(
        *specs, net, keras.optimizers.SGD(1e-3), gamma=0.99, target_update_tau=0.1
    )


def _make_sleeping_experiment(
    times: Sequence[float], limiter: Any, update_time: float, **settings: Any
) -> Any:
    """Makes an experiment of uniform replay; of a queue if there is no limiter."""
    from typing_extensions import override

    from tfrl import distribute, replay_service, train

    def make_table(name: str, signature: Any) -> Any:
        if limiter is None:
            return replay_service.Table.queue(name, 1_000, signature=signature)
        return replay_service.Table(
            name,
            sampler=replay_service.selectors.Uniform(),
            remover=replay_service.selectors.Fifo(),
            max_size=100_000,
            rate_limiter=limiter,
            signature=signature,
        )

    class Slow(train.Callback):
        interval = 1

        @override
        def on_interval(self, iteration: int) -> None:
            time.sleep(update_time)

    return distribute.Experiment(
        functools.partial(_make_sleeping, times=times),
        _make_dqn,
        make_table,
        sequence_length=2,
        stride_length=1,
        **{"batch_size": 16, "push_period": 10, "pull_period": 100, **settings},
        make_run_settings=lambda _: {
            "checkpoint_interval": 10**6,
            "log_interval": 10,
            "callbacks": [Slow()],
        },
    )


def actors(say: Callable[[str], None], window: float = 20.0) -> None:
    """Measures how the steps a second grow with the number of actors."""
    from tfrl import replay_service

    one = 0.0
    for count in (1, 2, 4, 8):
        experiment = _make_sleeping_experiment(
            [1e-3], replay_service.rate_limiters.MinSize(100), update_time=0.1
        )
        with (
            tempfile.TemporaryDirectory() as folder,
            _distributed(pathlib.Path(folder), experiment, count) as found,
        ):
            port = found()["the replay server"][1]
            _until(functools.partial(_are_alive, pathlib.Path(folder), count))
            before, start = _limiter(port).insert_stats.completed, time.monotonic()
            time.sleep(window)
            after, end = _limiter(port).insert_stats.completed, time.monotonic()
        speed = (after - before) / (end - start)
        one = one or speed
        say(f"{count} actors: {speed:6.0f} steps/s, {speed / one:.2f} times one")


def _rows(folder: pathlib.Path) -> list[dict[str, str]]:
    """Returns the rows of a run's metrics.csv; none before that is there."""
    import csv

    try:
        with (folder / "run" / "metrics.csv").open() as file:
            return list(csv.DictReader(file))
    except FileNotFoundError:
        return []


def _are_alive(folder: pathlib.Path, count: int) -> bool:
    """Whether so many actors have reported, as the last row of metrics.csv says."""
    rows = _rows(folder)
    return bool(rows) and float(rows[-1]["actors_alive"] or 0) == count


def lag(say: Callable[[str], None], window: float = 30.0) -> None:
    """Measures the policy lag where the learner waits for the actors.

    A frame of a call was chosen with weights that are half of a period old when the
    call begins, and is trained on when it has ended, on average after half of the
    updates on a message. The duration of a call is the number that the actors report;
    it is not derived from the speed of the learner.
    """
    batch_size, pull_period, push_period = 10, 100, 2
    for pull_seconds in (0.02, 0.2):
        experiment = _make_sleeping_experiment(
            [1e-3],
            None,
            0.0,
            batch_size=batch_size,
            pull_period=pull_period,
            push_period=push_period,
            pull_seconds=pull_seconds,
        )
        with (
            tempfile.TemporaryDirectory() as name,
            _distributed(pathlib.Path(name), experiment, 2),
        ):
            folder = pathlib.Path(name)
            _until(functools.partial(_are_alive, folder, 2))
            first = len(_rows(folder))
            time.sleep(window)
            rows = _rows(folder)[first:]
        measured = statistics.median(float(row["policy_lag_p50"]) for row in rows)
        seconds, updates, steps = (
            float(rows[-1][column]) - float(rows[0][column])
            for column in ("training_seconds", "iteration", "environment_steps")
        )
        updates /= seconds
        call = 2 * pull_period * seconds / steps  # Of each of two actors.
        expected = updates * (pull_seconds / 2 + call) + push_period / 2
        expected += pull_period / batch_size / 2
        say(
            f"pull_seconds={pull_seconds:g}: lag {measured:.0f} updates, formula "
            f"{expected:.1f}, ratio {measured / expected:.2f} ({updates:.0f} "
            f"updates/s, calls of {call:.3f} s)"
        )


def pacing(say: Callable[[str], None], window: float = 60.0) -> None:
    """Measures whether samples and inserts stay within the limiters' windows."""
    from tfrl import replay_service

    limiter = replay_service.rate_limiters.SampleToInsertRatio(4.0, 200, 1_000.0)
    for num_shards in (1, 3):
        experiment = _make_sleeping_experiment(
            [1e-3, 2e-3, 4e-3], limiter, update_time=1e-3
        )
        with (
            tempfile.TemporaryDirectory() as folder,
            _distributed(pathlib.Path(folder), experiment, 3, num_shards) as found,
        ):
            ports = [port for _, port in found().values() if port]
            _until(functools.partial(_has_sampled, ports[0], 1_000))
            first = _totals(ports)
            seen = [first]
            deadline = time.monotonic() + window
            while time.monotonic() < deadline:
                time.sleep(0.2)
                seen.append(_totals(ports))
        low, high = np.min(seen, axis=0), np.max(seen, axis=0)
        inserts, samples = seen[-1][0] - first[0], seen[-1][1] - first[1]
        # The window that was asked for, not the windows of the shards.
        is_inside = low[2] >= limiter.min_diff and high[2] <= limiter.max_diff
        say(
            f"{num_shards} shards: {samples / inserts:.3f} samples per insert, inserts "
            f"times 4 minus samples in [{low[2]:.0f}, {high[2]:.0f}], window "
            f"[{limiter.min_diff:.0f}, {limiter.max_diff:.0f}]: "
            f"{'inside' if is_inside else 'OUT'}; the shards' windows add up to "
            f"[{seen[0][3]:.0f}, {seen[0][4]:.0f}]"
        )


def _totals(ports: Sequence[int]) -> list[float]:
    """Returns inserts, samples, their difference and its window, summed over shards."""
    infos = [_limiter(port) for port in ports]
    return [
        sum(info.insert_stats.completed for info in infos),
        sum(info.sample_stats.completed for info in infos),
        sum(
            info.samples_per_insert * info.insert_stats.completed
            - info.sample_stats.completed
            for info in infos
        ),
        sum(info.min_diff for info in infos),
        sum(info.max_diff for info in infos),
    ]


_MEASURES = {
    "overhead": overhead,
    "actors": actors,
    "lag": lag,
    "pacing": pacing,
}


def main() -> None:
    """Does the measurements that the command line asks for."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.distribute")
    parser.add_argument("measures", nargs="*", help=", ".join(_MEASURES))
    parser.add_argument("--role", help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=pathlib.Path, help=argparse.SUPPRESS)
    parser.add_argument("--address", help=argparse.SUPPRESS)
    options = parser.parse_args()
    # The servers of a run let this process's clients in, too.
    os.environ.setdefault("TFRL_REPLAY_TOKEN", secrets.token_hex(32))
    if options.role == "server":
        _serve_by_hand(options.folder)
    elif options.role:
        {"actor": _act_by_hand, "learner": _learn_by_hand}[options.role](
            options.address
        )
    else:
        for name in options.measures or _MEASURES:
            _MEASURES[name](lambda line: print(line, flush=True))


if __name__ == "__main__":
    main()
