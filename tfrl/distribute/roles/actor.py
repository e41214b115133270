"""The actor of a run: it steps environments and writes their frames."""

from __future__ import annotations

import contextlib
from collections.abc import Callable

import numpy as np

from tfrl import replay_buffers, replay_service, train
from tfrl.agents import tf_agent
from tfrl.distribute import replay_servers
from tfrl.distribute.experiment import Experiment
from tfrl.distribute.roles import actor_reports, run_tables
from tfrl.distribute.shards import home_shard, sharded_client
from tfrl.distribute.weights import shared_weights, weight_versions
from tfrl.environments import tf_environment

_Writer = replay_buffers.ReverbRolloutObserver | home_shard.HomeWriter
# The interval at which an actor that waits for the learner checks whether it is
# stopped.
_FLUSH_MILLISECONDS = 500


def act(
    experiment: Experiment,
    servers: replay_servers.Servers,
    number: int,
    starts: int,
    is_stopped: Callable[[], bool],
) -> None:
    """Collects sequences with the newest weights until it is stopped.

    Args:
      experiment: The run's experiment.
      servers: The replay servers.
      number: The number of the actor, from 0.
      starts: The number of earlier starts of this actor, on which its seed depends.
      is_stopped: Returns whether to stop.
    """
    seed = seed_of(experiment, number, starts)
    environment, agent = experiment.build(seed, device=experiment.actor_device)
    central = replay_servers.CentralServer(servers)
    writer = _open_writer(experiment, servers, number, environment.batch_size)
    loop = make_loop(experiment, environment, agent, seed)
    reporter = actor_reports.Reporter(central.client, number)

    def report() -> None:
        central.attempt(lambda: reporter.report(loop.info), within=replay_servers.SHORT)

    newest = shared_weights.PulledWeights(
        agent, central.client, experiment.pull_seconds
    )
    with contextlib.closing(environment), contextlib.closing(newest) as weights:
        while not is_stopped():
            central.attempt(weights.update)
            frames = loop.collect_frames(experiment.pull_period)
            writer(weight_versions.stamp(frames, weights.version))
            report()
            _flush(writer, is_stopped, report)


def seed_of(experiment: Experiment, number: int, starts: int) -> int:
    """Returns the seed of an actor's environment and loop.

    Args:
      experiment: The run's experiment.
      number: The number of the actor, from 0.
      starts: The number of earlier starts of this actor.
    """
    entropy = np.random.SeedSequence([experiment.seed, number, starts])
    return int(entropy.generate_state(1)[0] >> 1)


def make_loop(
    experiment: Experiment,
    environment: tf_environment.TFEnvironment,
    agent: tf_agent.TFAgent,
    seed: int,
) -> train.ActorLoop:
    """Makes the loop with which an actor collects."""
    return train.ActorLoop(
        environment,
        agent,
        seed=seed,
        jit_compile="auto" if experiment.jit_compile else False,
    )


def make_writer(
    experiment: Experiment, client: replay_service.Client, batch_size: int
) -> replay_buffers.ReverbRolloutObserver:
    """Makes the observer that writes an actor's rollouts of frames.

    Args:
      experiment: The run's experiment.
      client: A client of the actor's server.
      batch_size: The number of environments.
    """
    return replay_buffers.ReverbRolloutObserver(
        client,
        run_tables.SEQUENCES,
        experiment.sequence_length,
        experiment.stride_length,
        batch_size=batch_size,
        rollout_length=experiment.pull_period,
    )


def _open_writer(
    experiment: Experiment,
    servers: replay_servers.Servers,
    number: int,
    batch_size: int,
) -> _Writer:
    """Makes the observer that writes an actor's rollouts to one of the servers."""

    def make(client: replay_service.Client) -> replay_buffers.ReverbRolloutObserver:
        return make_writer(experiment, client, batch_size)

    if len(servers.addresses()) == 1:
        return make(replay_service.Client(servers.first))
    shards = sharded_client.ShardedClient(
        servers.addresses,
        run_tables.SEQUENCES,
        items_per_message=experiment.items_per_message(batch_size),
    )
    return home_shard.HomeWriter(shards, number, make)


def _flush(
    writer: _Writer,
    is_stopped: Callable[[], bool],
    report: Callable[[], None],
) -> None:
    """Waits until the server has all items, even if the learner is slow."""
    while not is_stopped():
        with contextlib.suppress(replay_service.errors.DeadlineExceededError):
            writer.flush(_FLUSH_MILLISECONDS)
            return
        report()  # Tells the learner that this actor lives.
