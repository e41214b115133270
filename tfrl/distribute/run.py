"""Trains an agent with actors in processes of their own.

A server holds three tables: the sequences that actors write and a learner samples; the
newest weights, which the learner pushes and the actors pull; and what actors report of
their episodes. The weights include the statistics of the observation normalizer, which
the sequences move when the learner trains on them. The server, the actors
and the learner are processes, which the calling process watches:

```python
distribute.run_distributed(
    distribute.Experiment(make_environment, make_agent, make_table, ...),
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

import functools
import signal
from collections.abc import Callable

from tfrl import replay_service, train
from tfrl.distribute import actor, learner, supervised_server, tables
from tfrl.distribute import experiment as experiments
from tfrl.system import directory_lock, function_process, interrupts, supervisor
from tfrl.utils import number_checks

SERVER, LEARNER = "the replay server", "the learner"


def run_distributed(
    experiment: experiments.Experiment,
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
    number_checks.check_sizes(num_actors=num_actors, num_iterations=num_iterations)
    experiment.check()
    directory.replay_server.mkdir(exist_ok=True)
    # While the learner starts, or starts again, nobody holds the lock of `directory`.
    with directory_lock.locked(directory.replay_server):
        members = _members(experiment, directory, num_actors, num_iterations)
        directory.unlock()
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


def _members(
    experiment: experiments.Experiment,
    directory: train.RunDirectory,
    num_actors: int,
    num_iterations: int,
) -> list[supervisor.Member]:
    """Starts the server, and returns all members in the order of their start."""
    server = supervised_server.SupervisedServer(
        tables.make_tables(experiment), directory.replay_server
    )
    address = f"localhost:{server.port}"

    def start_actor(number: int, starts: int) -> supervisor.Process:
        return function_process.FunctionProcess(
            functools.partial(actor.act, experiment, address, number, starts),
            f"actor {number}",
        )

    learns = functools.partial(
        learner.learn, experiment, address, directory, num_iterations
    )
    return [
        supervisor.Member(SERVER, server.start),
        *(
            supervisor.Member(f"actor {number}", functools.partial(start_actor, number))
            for number in range(num_actors)
        ),
        supervisor.Member(LEARNER, supervisor.runs(learns, LEARNER)),
    ]
