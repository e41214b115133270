"""Trains an agent with actors in processes of their own.

A server holds the tables by which processes meet: the sequences that actors write and a
learner samples; the newest weights, which the learner pushes and the actors pull; and
what actors report of their episodes. The weights include the statistics of the
observation normalizer, which the sequences move when the learner trains on them. The
server, the actors and the learner are processes, which the calling process watches:

```python
distribute.run_distributed(
    distribute.Experiment(make_environment, make_agent, make_table, ...),
    train.RunDirectory("run", {"num_iterations": 10_000}),
    num_actors=2,
    num_iterations=10_000,
)
```

With `num_shards`, several servers share the sequences, and each actor writes to one of
them. With `num_learners`, several replicas share the updates.

The learner is a `train.Run` of a `train.DatasetLoop`, with the outputs of every
run. An iteration is one update.

A process that is killed is started again, and the others wait for it or go on:

- An actor begins new episodes with the newest weights. What it had not sent is lost.
- The learner goes on from its last checkpoint. The actors go on until the table's rate
  limiter stops them.
- The server goes on from its last checkpoint, which it writes whenever the run does,
  with the same port. Actors and learner connect to it again, for 30 seconds. If there
  are several, they go on with the others.
- All replicas of the learner go on from the last checkpoint when one of them is killed.

If the calling process ends, so do the others; the same call then resumes the run.
"""

from __future__ import annotations

import signal
from collections.abc import Callable

from tfrl import replay_service, train
from tfrl.distribute import experiment as experiments
from tfrl.distribute import launchers, manifest, remote_process
from tfrl.distribute import plan as plans
from tfrl.system import directory_lock, interrupts, supervisor


def run_distributed(
    experiment: experiments.Experiment,
    directory: train.RunDirectory,
    num_actors: int,
    num_iterations: int,
    *,
    num_shards: int = 1,
    num_learners: int = 1,
    evaluator: bool = False,
    launcher: launchers.Launcher | None = None,
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
      num_shards: The number of replay servers, among which the experiment's table is
        divided. Each actor writes to one of them.
      num_learners: The number of replicas of the learner, each of which computes the
        gradients of its part of a batch. A `LocalLauncher` gives each a GPU of this
        host, or else a part of its CPU; the other launchers a process.
      evaluator: Whether a process of its own evaluates, so that the learner stops for
        the last evaluation alone. A result is in the row of metrics.csv after it, and
        the best policy is the one that was evaluated.
      launcher: Starts the processes; a `LocalLauncher` if None.
      is_stopped: Returns whether to stop in the same way.
      say: See `supervisor.supervise`.

    Returns:
      The result of the learner's `train.Run`; None if it was stopped before that began.

    Raises:
      ValueError: A number is not positive, or there are more shards than actors, or the
        table cannot be divided among them; see `tables.divided`. Or `batch_size` is
        not a multiple of the number of learners.
      ChildRaisedError: A process has raised an exception.
      DirectoryLockedError: Another process trains there.
      RuntimeError: A process has been killed too often.
    """
    plan = plans.Plan(
        experiment,
        directory,
        num_actors,
        num_iterations,
        num_shards,
        num_learners,
        evaluator,
    )
    launcher = launcher or launchers.LocalLauncher()
    resumes = manifest.describe(directory.manifest, plan.server_directories)
    if resumes is not None:
        (say or remote_process.to_stderr)(resumes)
    directory.replay_server.mkdir(exist_ok=True)
    # While the learner starts, or starts again, nobody holds the lock of `directory`.
    with (
        directory_lock.locked(directory.replay_server),
        launcher.launch(plan) as members,
    ):
        directory.unlock()
        signals = interrupts.requested(
            [signal.SIGINT, signal.SIGTERM], lambda: "actors and learner"
        )
        with signals as is_requested:
            return supervisor.supervise(
                members,
                members[-1].name,
                lambda: is_requested() or is_stopped(),
                recovers=(replay_service.ReverbError,),
                say=say,
            )
