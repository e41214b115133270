"""Trains an agent with actors in processes of their own.

A server holds three tables: the sequences that actors write and a learner samples; the
newest weights, which the learner pushes and the actors pull; and what actors report of
their episodes. The weights include the statistics of the observation normalizer, which
the sequences move when the learner trains on them. The server, the actors
and the learner are processes, which the calling process watches:

```python
actor_learner.run(
    actor_learner.Experiment(make_environment, make_agent, make_table, ...),
    train.RunDirectory("run", {"num_iterations": 10_000}),
    num_actors=2,
    num_iterations=10_000,
)
```

The learner is a `train.Run` of a `train.DatasetLoop`, with the outputs of every
run. An iteration is one update.

A process that is killed is started again, and the others wait for it or go on:

- An actor begins new episodes with the newest weights. What it had not sent is lost.
- The learner goes on from its last checkpoint. The actors go on until the table's rate
  limiter stops them.
- The server goes on from its last checkpoint, which it writes whenever the run does,
  with the same port. Actors and learner connect to it again, for 30 seconds.

If the calling process ends, so do the others; the same call then resumes the run.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import pathlib
import signal
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from tfrl import replay_buffers, replay_service, train
from tfrl.agents import tf_agent
from tfrl.environments import tf_environment
from tfrl.experimental.distributed import reports
from tfrl.experimental.distributed import reverb_variable_container as variables_lib
from tfrl.replay_service import server_process
from tfrl.specs import tensor_spec
from tfrl.system import directory_lock, function_process, interrupts, supervisor
from tfrl.utils import number_checks

SERVER, LEARNER = "the replay server", "the learner"
# How often an actor that waits for the learner looks whether it is stopped.
_FLUSH_MILLISECONDS = 500


@dataclasses.dataclass(frozen=True)
class Experiment:
    """What actors and learner do; functions and numbers, sent to all processes.

    Attributes:
      make_environment: Makes an actor's environment of a seed, a `TFEnvironment`.
      make_agent: Makes the agent from an environment, for actors and learner alike.
      make_table: Makes the table of sequences from its name and signature; its rate
        limiter keeps actors and learner in step.
      sequence_length: The number of frames in an item of the table. Items may cross the
        ends of episodes.
      stride_length: How many frames after an item the next item begins.
      batch_size: The number of items in an update.
      push_period: The number of updates between pushes of the weights.
      pull_period: The number of steps of an actor's environment between pulls.
      make_run_settings: Makes further arguments of `train.Run` from the learner's
        agent, such as `evaluate`.
      max_in_flight: The number of items that are sent to the learner ahead of their
        use; three batches if None.
      jit_compile: Whether actors compile their loops, and the learner the updates
        between two pushes, where possible.
      seed: Seed of the environments and actors.
    """

    make_environment: Callable[[int], tf_environment.TFEnvironment]
    make_agent: Callable[[tf_environment.TFEnvironment], tf_agent.TFAgent]
    make_table: Callable[[str, Any], replay_service.Table]
    sequence_length: int
    stride_length: int
    batch_size: int
    push_period: int = 1
    pull_period: int = 20
    make_run_settings: Callable[[tf_agent.TFAgent], Mapping[str, Any]] = lambda _: {}
    max_in_flight: int | None = None
    jit_compile: bool = True
    seed: int = 0

    def build(self, seed: int) -> tuple[tf_environment.TFEnvironment, tf_agent.TFAgent]:
        """Makes an environment and the agent, with its variables."""
        environment = self.make_environment(seed)
        agent = self.make_agent(environment)
        agent.initialize()
        return environment, agent

    def build_agent(self) -> tf_agent.TFAgent:
        """Makes the agent alone; the environment that shows its specs is closed."""
        environment, agent = self.build(self.seed)
        environment.close()
        return agent


def run(
    experiment: Experiment,
    directory: train.RunDirectory,
    num_actors: int,
    num_iterations: int,
    *,
    is_stopped: Callable[[], bool] = lambda: False,
    say: Callable[[str], None] | None = None,
) -> train.RunResult | None:
    """Trains until `num_iterations` updates are done, and then returns.

    On SIGINT (Ctrl-C) or SIGTERM it saves a checkpoint and stops, as a `train.Run`
    does.

    Args:
      experiment: What to do.
      directory: The directory of the outputs; a run in it is resumed. The learner's
        process locks it, and this process the server's directory in it.
      num_actors: The number of actors.
      num_iterations: The number of updates in all, those of the resumed run included.
      is_stopped: Returns whether to stop in the same way.
      say: See `supervisor.supervise`.

    Returns:
      The result of the learner's `train.Run`; None if it was stopped before that began.

    Raises:
      ValueError: A number is not positive.
      ChildRaisedError: A process has raised an exception.
      DirectoryLockedError: Another process trains there.
      RuntimeError: A process has been killed too often.
    """
    number_checks.check_sizes(
        num_actors=num_actors,
        num_iterations=num_iterations,
        sequence_length=experiment.sequence_length,
        stride_length=experiment.stride_length,
        batch_size=experiment.batch_size,
        push_period=experiment.push_period,
        pull_period=experiment.pull_period,
    )
    directory.replay_server.mkdir(exist_ok=True)
    # While the learner starts, or starts again, nobody holds the lock of `directory`.
    with directory_lock.locked(directory.replay_server):
        return _run(experiment, directory, num_actors, num_iterations, is_stopped, say)


def _run(
    experiment: Experiment,
    directory: train.RunDirectory,
    num_actors: int,
    num_iterations: int,
    is_stopped: Callable[[], bool],
    say: Callable[[str], None] | None,
) -> train.RunResult | None:
    """Does the work of `run` while the directory of the server is locked."""
    server = _ServerProcess(make_tables(experiment), directory.replay_server)
    address = f"localhost:{server.port}"

    def start_actor(number: int, starts: int) -> supervisor.Process:
        return function_process.FunctionProcess(
            functools.partial(act, experiment, address, number, starts),
            f"actor {number}",
        )

    directory.unlock()
    members = [
        supervisor.Member(SERVER, server.start),
        *(
            supervisor.Member(f"actor {number}", functools.partial(start_actor, number))
            for number in range(num_actors)
        ),
        supervisor.Member(
            LEARNER,
            supervisor.runs(
                functools.partial(
                    learn, experiment, address, directory, num_iterations
                ),
                LEARNER,
            ),
        ),
    ]
    signals = interrupts.requested(
        [signal.SIGINT, signal.SIGTERM], lambda: "actors and learner"
    )
    with signals as is_requested:
        return supervisor.supervise(
            members,
            LEARNER,
            lambda: is_requested() or is_stopped(),
            recovers=(replay_service.ReverbError,),
            say=say,
        )


def make_tables(experiment: Experiment) -> list[replay_service.Table]:
    """Makes the tables of sequences, weights and reports, for a server."""
    agent = experiment.build_agent()
    variables = _shared_variables(agent)
    return [
        experiment.make_table(
            replay_buffers.reverb_replay_buffer.DEFAULT_TABLE,
            tensor_spec.add_outer_dim(
                agent.collect_data_spec, experiment.sequence_length
            ),
        ),
        replay_service.Table(
            variables_lib.DEFAULT_TABLE,
            sampler=replay_service.selectors.Uniform(),
            remover=replay_service.selectors.Fifo(),
            max_size=1,
            rate_limiter=replay_service.rate_limiters.MinSize(1),
            signature=tf.nest.map_structure(
                lambda v: tf.TensorSpec(v.shape, v.dtype), variables
            ),
        ),
        reports.make_table(),
    ]


def act(
    experiment: Experiment,
    address: str,
    number: int,
    starts: int,
    is_stopped: Callable[[], bool],
) -> None:
    """Collects sequences with the newest weights until it is stopped.

    Args:
      experiment: What to do.
      address: The server's address.
      number: The number of the actor, from 0.
      starts: How often this actor was started before; its seed depends on it.
      is_stopped: Returns whether to stop.
    """
    entropy = np.random.SeedSequence([experiment.seed, number, starts])
    seed = int(entropy.generate_state(1)[0] >> 1)
    environment, agent = experiment.build(seed)
    client = replay_service.Client(address)
    container = variables_lib.ReverbVariableContainer(address)
    observer = replay_buffers.ReverbRolloutObserver(
        client,
        replay_buffers.reverb_replay_buffer.DEFAULT_TABLE,
        experiment.sequence_length,
        experiment.stride_length,
        batch_size=environment.batch_size,
        rollout_length=experiment.pull_period,
    )
    loop = train.CollectLoop(
        environment,
        agent,
        seed=seed,
        jit_compile="auto" if experiment.jit_compile else False,
    )
    variables = _shared_variables(agent)
    reporter = reports.Reporter(client, number)
    pulled = -1
    with contextlib.closing(environment):
        while not is_stopped():
            weights = client.server_info()[variables_lib.DEFAULT_TABLE]
            pushed = weights.rate_limiter_info.insert_stats.completed
            # A server without a checkpoint has none until the learner pushes them.
            if weights.current_size and pushed != pulled:
                container.update(variables)
                pulled = pushed
            observer(loop.collect_frames(experiment.pull_period))
            reporter.report(loop.info)
            _flush(observer, is_stopped)


def learn(
    experiment: Experiment,
    address: str,
    directory: train.RunDirectory,
    num_iterations: int,
    is_stopped: Callable[[], bool],
) -> train.RunResult:
    """Trains on the actors' sequences, and pushes the weights.

    A signal stops it as it stops every `train.Run`: it saves a checkpoint first.

    Args:
      experiment: What to do.
      address: The server's address.
      directory: See `run`.
      num_iterations: See `run`.
      is_stopped: Returns whether to stop before that.
    """
    agent = experiment.build_agent()
    client = replay_service.Client(address)
    replay_buffer = replay_buffers.ReverbReplayBuffer(
        agent.collect_data_spec,
        replay_buffers.reverb_replay_buffer.DEFAULT_TABLE,
        experiment.sequence_length,
        server_address=address,
        dataset_buffer_size=experiment.max_in_flight,
    )
    settings = dict(experiment.make_run_settings(agent))
    push = _PushWeights(agent, client, address, experiment.push_period)
    settings["callbacks"] = [push, *settings.get("callbacks", ())]
    with replay_buffer.reraise():
        loop = _LearnerLoop(
            agent,
            replay_buffer,
            experiment.batch_size,
            client,
            experiment.push_period if experiment.jit_compile else None,
        )
        run = train.Run(
            loop,
            directory,
            num_iterations=num_iterations,
            is_interrupted=is_stopped,
            **settings,
        )
        loop.take_reports()
        result = run.run()
    if not (result.finished or result.stopped_by or is_stopped()):
        # By a signal, which shall not look like the end of the training.
        signal.raise_signal(signal.SIGTERM)
    return result


class _LearnerLoop(train.DatasetLoop):
    """A loop over the sequences in a server, which each checkpoint of a run saves."""

    def __init__(
        self,
        agent: tf_agent.TFAgent,
        replay_buffer: replay_buffers.ReverbReplayBuffer,
        batch_size: int,
        client: replay_service.Client,
        compiled_updates: int | None,
    ) -> None:
        super().__init__(
            agent,
            lambda: replay_buffer.as_dataset(sample_batch_size=batch_size),
            replay_buffer,
            compiled_updates=compiled_updates,
        )
        self._collected = reports.Collected(client)

    def checkpoint_items(self, include_replay_buffer: bool = True) -> dict[str, Any]:
        """Returns the objects to save, by name."""
        items = super().checkpoint_items(include_replay_buffer)
        return {**items, "collected": self._collected}

    def take_reports(self) -> None:
        """Adds the new reports of actors to the counters."""
        self._collected.take()

    def info(self, loss: float = float("nan")) -> train.IterationInfo:
        """Returns the counters, of the steps and episodes that actors have reported."""
        return super().info(loss)._replace(**self._collected.counters())

    def _run_call(
        self, most_iterations: int, loss_sum: tf.Tensor
    ) -> tuple[int, tf.Tensor]:
        result = super()._run_call(most_iterations, loss_sum)
        self.take_reports()
        return result


class _PushWeights(train.Callback):
    """Pushes what actors need to a server."""

    def __init__(
        self,
        agent: tf_agent.TFAgent,
        client: replay_service.Client,
        address: str,
        period: int,
    ) -> None:
        self.interval = period
        self._variables = _shared_variables(agent)
        self._client = client
        self._container = variables_lib.ReverbVariableContainer(address)

    def on_start(self, iteration: int) -> None:
        self.on_interval(iteration)
        # From now on a restored server has weights.
        self._client.checkpoint()

    def on_interval(self, iteration: int) -> None:
        del iteration
        self._container.push(self._variables)


def _flush(
    observer: replay_buffers.ReverbRolloutObserver, is_stopped: Callable[[], bool]
) -> None:
    """Waits until the server has all items, while the learner keeps up or not."""
    while not is_stopped():
        with contextlib.suppress(replay_service.errors.DeadlineExceededError):
            observer.flush(_FLUSH_MILLISECONDS)
            return


def _shared_variables(agent: tf_agent.TFAgent) -> dict[str, Any]:
    """Returns the variables that the learner pushes."""
    return {
        variables_lib.POLICY_KEY: list(agent.collect_policy.variables()),
        variables_lib.TRAIN_STEP_KEY: agent.train_step_counter,
    }


class _ServerProcess:
    """A server that starts again with the same port, as a supervisor's process."""

    def __init__(
        self, tables: Sequence[replay_service.Table], directory: pathlib.Path
    ) -> None:
        """Starts the server.

        Args:
          tables: Its tables.
          directory: The directory of its checkpoints.
        """
        self._tables = tables
        self._checkpointer = replay_service.checkpointers.DefaultCheckpointer(directory)
        self._server = self._make(None)
        self._killed_at_start: str | None = None

    @property
    def port(self) -> int:
        """The port, which stays the same."""
        return self._server.port

    @property
    def pid(self) -> int:
        """The process id of the running server."""
        return self._server.pid

    def start(self, starts: int) -> _ServerProcess:
        """Starts the server again, if this is not its first start."""
        self._killed_at_start = None
        if starts:
            try:
                self._server = self._make(self._server.port)
            except server_process.KilledAtStartError as error:
                self._killed_at_start = error.how
        return self

    def poll(self) -> function_process.Ending | None:
        """Returns how the server has died; None while it runs."""
        how = self._killed_at_start or self._server.how_it_died()
        return None if how is None else function_process.Ending(how)

    def stop(self, grace: float) -> None:
        """Stops the server."""
        del grace  # A server takes two seconds at most.
        self._server.stop()

    def _make(self, port: int | None) -> replay_service.Server:
        return replay_service.Server(self._tables, port, self._checkpointer)
