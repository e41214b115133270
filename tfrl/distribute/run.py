"""Trains an agent with actors in separate processes.

A server holds the tables through which the processes communicate: the sequences that
actors write and a learner samples; the newest weights, which the learner pushes and the
actors pull; and the actors' reports of their episodes. The weights include the
statistics of the observation normalizer, which the learner updates with the sequences
on which it trains. The server, the actors and the learner are processes, which the
calling process watches:

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

A process that is killed is started again, and the others wait for it or continue:

- An actor begins new episodes with the newest weights. Steps that it had not sent are
  lost.
- The learner continues from its last checkpoint. The actors continue until the table's
  rate limiter stops them.
- The server continues, with the same port, from its last checkpoint, which it writes
  whenever the run writes one. Actors and learner try to connect to it again for 30
  seconds. If there are several servers, actors and learner continue with the others.
- All replicas of the learner continue from the last checkpoint when one of them is
  killed.

If the calling process ends, so do the others; the same call then resumes the run.

With `schedule="lockstep"`, for agents that learn from fresh rollouts, actors and
learner take turns in rounds (see `lockstep.rounds`). An iteration is a round: each
actor takes `pull_period` steps with the newest weights, and the learner does updates of
`batch_size` sequences, in a fixed order, until all of them were used once. Such a run
is reproducible. If one of its processes is killed, all of them start again from the
last checkpoint, and end with the same weights. `make_table`, `push_period` and
`max_in_flight` have no effect.
"""

from __future__ import annotations

import contextlib
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Literal

from tfrl import replay_service, train
from tfrl.distribute.coordination import remote_work
from tfrl.distribute.experiment import Experiment
from tfrl.distribute.launch import local_launcher
from tfrl.distribute.launch.plan import Launcher, Plan
from tfrl.distribute.roles import checkpoint_manifest, devices
from tfrl.savers import whole_checkpoints
from tfrl.system import child_errors, directory_lock, interrupts, log, supervisor
from tfrl.train.runs import full_disk, run_directory

# The errors of a `train.Run` that name the cause and the remedy.
_EXPLAINED = (
    full_disk.FullDiskError,
    run_directory.RunDirectoryError,
    whole_checkpoints.CheckpointError,
)


def run_distributed(
    experiment: Experiment,
    directory: train.RunDirectory,
    num_actors: int,
    num_iterations: int,
    *,
    num_shards: int = 1,
    num_learners: int = 1,
    schedule: Literal["free", "lockstep"] = "free",
    evaluator: bool = False,
    launcher: Launcher | None = None,
    is_stopped: Callable[[], bool] = lambda: False,
    say: Callable[[str], None] | None = None,
) -> train.RunResult | None:
    """Trains until `num_iterations` updates are done, and then returns.

    The calling process sees no GPU from then on, because it only watches the others.

    On SIGINT (Ctrl-C), SIGTERM or SIGHUP it saves a checkpoint and stops, as a
    `train.Run` does.

    Args:
      experiment: The run's experiment.
      directory: The directory of the outputs; a run in it is resumed. The learner's
        process locks this directory, and the calling process locks the server's
        directory in it.
      num_actors: The number of actors.
      num_iterations: The total number of updates, including the updates of the resumed
        run; in lockstep, of rounds.
      num_shards: The number of replay servers, among which the experiment's table is
        divided. Each actor writes to one of them.
      num_learners: The number of replicas of the learner, each of which computes the
        gradients of its part of a batch. A `LocalLauncher` gives each replica a GPU of
        this host, or else a part of its CPU; the other launchers give each replica a
        process.
      schedule: "free" lets actors and learner run independently, within the limits of
        the table's rate limiter. With "lockstep" they take turns, so that runs are
        reproducible; see above.
      evaluator: Whether a separate process evaluates, so that the learner waits only
        for the last evaluation. A result appears in the next row of metrics.csv, and
        the best policy has the weights that were evaluated.
      launcher: Starts the processes; a `LocalLauncher` if None.
      is_stopped: Returns whether to stop as on a signal.
      say: See `supervisor.supervise`.

    Returns:
      The result of the learner's `train.Run`; None if it was stopped before the
      learner's run began.

    Raises:
      ValueError: A number is not positive, or there are more shards than actors, or the
        table cannot be divided among them; see `run_tables.divided`. Or
        `batch_size` is not a multiple of the number of learners, or the experiment does
        not suit lockstep.
      ChildRaisedError: A process has raised an exception.
      DirectoryLockedError: Another process trains there.
      FullDiskError: There is no space left for the files of the run.
      CheckpointError: See `train.Run`.
      RunDirectoryError: See `train.Run`.
      RuntimeError: A process has been killed too often; or the call is made by the
        import of the module that a worker takes the experiment from.
    """
    remote_work.check_no_import()
    devices.hide_gpus()  # This process makes an agent, for the specs of the tables.
    plan = Plan(
        experiment,
        directory,
        num_actors,
        num_iterations,
        num_shards,
        num_learners,
        schedule,
        evaluator,
    )
    launcher = launcher or local_launcher.LocalLauncher()
    resumes = checkpoint_manifest.describe(directory.manifest, plan.server_directories)
    say = say or log.info
    if resumes is not None:
        say(resumes)
    directory.replay_server.mkdir(exist_ok=True)
    # While the learner starts, or starts again, nobody holds the lock of `directory`.
    with directory_lock.locked(directory.replay_server):
        _check_checkpoints(directory)
        directory.unlock()
        if not plan.is_lockstep:
            return _run(launcher, plan, is_stopped, say)
        restarts = supervisor.Restarts()
        while True:
            try:
                return _run(launcher, plan, is_stopped, say)
            except supervisor.MemberEndedError as error:
                pause = restarts.next_pause(str(error), error.__cause__)
                say(
                    f"{error}. All processes of the run are started again "
                    f"{supervisor.when(pause)}, from its last checkpoint."
                )
            time.sleep(pause)


def _check_checkpoints(directory: train.RunDirectory) -> None:
    """Checks the checkpoints at once, as the learner would after its start.

    Raises:
      RunDirectoryError: See `RunDirectory.check_checkpoints`.
    """
    directory.lock()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # The learner gives them.
        directory.check_checkpoints()


def _run(
    launcher: Launcher,
    plan: Plan,
    is_stopped: Callable[[], bool],
    say: Callable[[str], None],
) -> train.RunResult | None:
    """Starts all processes and watches them until the run ends."""
    with launcher.launch(plan) as members:
        signals = interrupts.requested(interrupts.SIGNALS, lambda: "actors and learner")
        with signals as is_requested, _explained_errors():
            return supervisor.supervise(
                members,
                members[-1].name,
                lambda: is_requested() or is_stopped(),
                recovers=(replay_service.ReverbError,),
                say=say,
                restarts=not plan.is_lockstep,
            )


@contextlib.contextmanager
def _explained_errors() -> Iterator[None]:
    """Raises errors that name a remedy without the traceback of a process."""
    try:
        yield
    except child_errors.ChildRaisedError as error:
        if isinstance(error.original, _EXPLAINED):
            raise error.original from None
        raise
